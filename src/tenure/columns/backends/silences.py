"""Silent nodes: those that owe a handle an answer, and say nothing at all.

The connection to a process that is stopped, or behind a cut cable, looks well for seconds. A slow
answer says nothing of its node: the row may have too few replicas just now. So the node is asked
something that it can answer by itself. Two times pass, not one, so that a handle whose own loop
stood still first reads what has come meanwhile.
"""

import asyncio
from collections.abc import Callable
from typing import Final

QUIET_SECONDS: Final = 0.5
"""After so long without a word, a node that owes an answer is probed."""
PROBED_SECONDS: Final = 0.5
"""How long it then has. Nodes answer a probe at once, from memory."""
SILENT_SECONDS: Final = QUIET_SECONDS + PROBED_SECONDS


class SilentNodes:
    """See above. `owes` says whether a node owes an answer; `probe` and `give_up` act on it."""

    def __init__(
        self,
        owes: Callable[[str], bool],
        probe: Callable[[str], None],
        give_up: Callable[[str], None],
    ) -> None:
        self._owes = owes
        self._probe = probe
        self._give_up = give_up
        self._heard: set[str] = set()
        """The watched nodes that have said something since they were last looked at."""
        self._looks: dict[str, asyncio.TimerHandle] = {}

    def on_asked(self, node: str) -> None:
        """The node owes an answer from now on."""
        if node not in self._looks:
            self._heard.discard(node)
            self._look_in(QUIET_SECONDS, node, self._on_quiet)

    def on_heard(self, node: str) -> None:
        """The node has said something."""
        self._heard.add(node)

    def close(self) -> None:
        """Watch no node any longer."""
        for look in self._looks.values():
            look.cancel()

    def _look_in(self, seconds: float, node: str, look: Callable[[str], None]) -> None:
        self._looks[node] = asyncio.get_running_loop().call_later(seconds, look, node)

    def _on_quiet(self, node: str) -> None:
        if self._is_silent(node):
            self._probe(node)
            self._look_in(PROBED_SECONDS, node, self._on_probed)

    def _on_probed(self, node: str) -> None:
        if self._is_silent(node):
            self._give_up(node)
            if self._owes(node):  # there is no other to be asked: this one may come back
                self.on_asked(node)

    def _is_silent(self, node: str) -> bool:
        """Whether it owes an answer, and has said nothing; otherwise it is watched, if it must."""
        del self._looks[node]
        if not self._owes(node):
            return False
        if node in self._heard:
            self.on_asked(node)
            return False
        return True
