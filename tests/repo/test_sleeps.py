"""Tests turn clocks or wait for events. Those that still sleep may only become fewer.

`sleep(0)` is no sleep: it lets what is ready run. A name or a product is one, because nobody knows
that it is nothing.
"""

import ast
from collections.abc import Iterator

from tests.repo.reading import ROOT, Module, report, sample, sources

SLEEPS = 158
"""How many sleeps there are in tests."""


def sleeps(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree()):
        match node:
            case ast.Call(args=[ast.Constant(value=0), *_]):
                pass
            case ast.Call(func=ast.Attribute(attr="sleep") | ast.Name(id="sleep"), args=[_, *_]):
                yield f"{module.path}:{node.lineno} {ast.unparse(node)}"
            case _:
                pass


def modules_of_tests() -> Iterator[Module]:
    for path in sources():
        if path.parts[0] == "tests":
            yield Module(str(path), str(path), (ROOT / path).read_text("utf-8"), is_package=False)


def test_no_more_tests_sleep() -> None:
    found = [line for module in modules_of_tests() for line in sleeps(module)]
    assert len(found) <= SLEEPS, report(found)


def test_a_sleep_is_found() -> None:
    text = "time.sleep(0.1)\nawait asyncio.sleep(0)\nawait sleep(pause)\nclock.sleep()\n"
    assert list(sleeps(sample("a", text))) == [
        "src/a.py:1 time.sleep(0.1)",
        "src/a.py:3 sleep(pause)",
    ]
