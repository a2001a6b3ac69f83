# What the benchmarks use of uhashring, which ships no types of its own.

from collections.abc import Sequence

class HashRing:
    def __init__(self, nodes: Sequence[str] = ..., *, vnodes: int | None = ...) -> None: ...
    def get_node(self, key: str) -> str: ...
