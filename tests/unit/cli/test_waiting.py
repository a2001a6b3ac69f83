"""A waiting command shows nothing at first, then a line that does not stay."""

import ast
import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cyclopts import App

from tenure.cli import following, output, status, waiting
from tenure.cli.app import GO_ON, at_work, build, run
from tenure.cli.waiting import WaitingLine, entered, without_line
from tests.patience import DEADLINE_SECONDS

Capture = pytest.CaptureFixture[str]


class Told:
    """A text that says when it was asked for."""

    def __init__(self, name: str = "ann") -> None:
        self.asked = threading.Event()
        self.name = name

    def __call__(self) -> str:
        self.asked.set()
        return f"waiting for {self.name}"


def test_a_short_wait_needs_no_word(capsys: Capture) -> None:
    with WaitingLine(lambda: "waiting for ann"):
        pass
    assert capsys.readouterr().err == ""


def test_a_longer_wait_is_told_on_a_line(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "SILENT_SECONDS", 0)
    told = Told()
    with WaitingLine(told):
        assert told.asked.wait(10)
    assert capsys.readouterr().err == "waiting for ann (0 s)\n"


def test_on_a_terminal_the_line_is_taken_away(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "SILENT_SECONDS", 0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    told = Told()
    with WaitingLine(told):
        assert told.asked.wait(10)
    said = capsys.readouterr().err
    assert said.startswith("\r\x1b[Kwaiting for ann (0 s)")
    assert said.endswith("\r\x1b[K")


def test_of_several_the_innermost_is_shown_that_lasts(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "SILENT_SECONDS", 0)
    outer, inner = Told("ann"), Told("bob")
    with WaitingLine(outer):
        assert outer.asked.wait(10)
        with WaitingLine(inner):
            assert inner.asked.wait(10)
    assert capsys.readouterr().err == "waiting for ann (0 s)\nwaiting for bob (0 s)\n"
    monkeypatch.setattr(waiting, "SILENT_SECONDS", 0.3)
    outer, inner = Told("ann"), Told("bob")
    with WaitingLine(outer):
        while not outer.asked.is_set():
            with WaitingLine(inner):
                outer.asked.wait(0.01)
            assert not inner.asked.is_set(), "what is asked again and again is no news"


def test_what_is_written_meanwhile_has_the_line_for_itself(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "SILENT_SECONDS", 0)
    monkeypatch.setattr(waiting, "REDRAW_SECONDS", 60)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    told = Told()
    for write in (
        output.say,
        output.put,
        output.complain,
        lambda text: output.show([text], [], empty=""),
    ):
        with WaitingLine(told):
            assert told.asked.wait(10)
            capsys.readouterr()
            write("done")
            assert capsys.readouterr().err.startswith("\r\x1b[K")
        told.asked.clear()
    with without_line(), WaitingLine(told):
        assert not told.asked.wait(0.05)


def test_no_line_is_drawn_into_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may take longer to draw than the line takes to come again."""
    monkeypatch.setattr(waiting, "SILENT_SECONDS", 0)
    monkeypatch.setattr(waiting, "REDRAW_SECONDS", 0.001)
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(f"sys.{name}.isatty", lambda: True)
    told, is_drawn_into = Told(), list[bool]()

    def draw(*_: object) -> None:
        told.asked.clear()
        is_drawn_into.append(told.asked.wait(0.05))

    monkeypatch.setattr(output, "_draw", draw)
    with WaitingLine(told):
        assert told.asked.wait(10)
        output.show(["owner"], [["ann"]], empty="")
        assert is_drawn_into == [False]
        assert told.asked.wait(10), "it comes again"


def all_commands(app: App, *path: str) -> Iterator[tuple[str, ...]]:
    for name in app:
        if not name.startswith("-"):
            subs = list(all_commands(app[name], *path, name))
            yield from subs or [(*path, name)]


def test_every_command_that_ends_has_a_line(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "SILENT_SECONDS", 0)
    found = set(all_commands(build()))
    assert {("columns", "backup"), ("simulate",), ("pool", "create"), ("evict",)} <= found
    for command in found:
        name = " ".join(command)
        with at_work([*command, "--json"]) as line:
            assert (line is None) == (name in GO_ON), name
            if line is not None:
                assert line.text() == f"tenure {name}: still working"
    capsys.readouterr()
    with at_work(["owners", "--watch", "rooms"]) as line:
        assert line is None


def test_commands_write_to_standard_output_in_one_place() -> None:
    """Otherwise a line that is drawn would not be removed first."""
    tell_of_themselves = {"up", "report", "run", "orphans", "completion", "docs"}
    for path in Path(waiting.__file__).parent.glob("*.py"):
        if path.stem in tell_of_themselves | {"output", "waiting", "app", "__init__"}:
            continue
        calls = [
            each for each in ast.walk(ast.parse(path.read_text())) if isinstance(each, ast.Call)
        ]
        names = [each.func.id for each in calls if isinstance(each.func, ast.Name)]
        assert "print" not in names, path


@pytest.mark.asyncio
async def test_a_service_has_a_line_for_its_beginning_and_one_for_its_end(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "SILENT_SECONDS", 0)
    told = asyncio.Event()

    @asynccontextmanager
    async def service() -> AsyncIterator[str]:
        await asyncio.to_thread(until_told, capsys, "starting")
        yield "its url"
        await asyncio.to_thread(until_told, capsys, "ending")
        told.set()

    async with entered(service(), "starting", "ending") as url:
        assert url == "its url"
        assert not told.is_set()
    assert told.is_set()


def until_told(capsys: Capture, word: str) -> None:
    until, said = time.monotonic() + DEADLINE_SECONDS, ""
    while f"{word} (" not in said:
        assert time.monotonic() < until, said
        said += capsys.readouterr().err


@pytest.mark.parametrize("command", [["status"], ["top", "rooms", "--once"], ["top"], ["events"]])
def test_who_asks_a_manager_that_says_nothing_is_told_of_the_wait(
    command: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "SILENT_SECONDS", 0)
    monkeypatch.setattr(following, "STATUS_SECONDS", 0.5)
    monkeypatch.setattr(status, "TIMEOUT_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        assert run([*command, "--manager", url]) != 0
    assert f"waiting for {url} (0 s)\n" in capsys.readouterr().err
