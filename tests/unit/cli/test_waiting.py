"""What a command shows while it waits: nothing at first, then a line that does not stay."""

import socket
import threading

import pytest

from tenure.cli import following, status, waiting
from tenure.cli.app import run
from tenure.cli.waiting import WaitingLine

Capture = pytest.CaptureFixture[str]


class Told:
    """A text that says when it was asked for."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    def __call__(self) -> str:
        self.asked.set()
        return "waiting for ann"


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


def test_a_wait_within_another_is_silent(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "SILENT_SECONDS", 0)
    outer, inner = Told(), Told()
    with WaitingLine(outer):
        assert outer.asked.wait(10)
        with WaitingLine(inner):
            pass
    assert not inner.asked.is_set()
    assert capsys.readouterr().err == "waiting for ann (0 s)\n"
    with WaitingLine(inner):
        assert inner.asked.wait(10), "the line is free again"


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
