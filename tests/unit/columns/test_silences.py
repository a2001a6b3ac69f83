"""A node that owes an answer and says nothing for a second is given up, whenever it fell silent."""

import heapq
from collections.abc import Callable
from itertools import count
from unittest.mock import Mock

import pytest

from tenure.columns.backends.silences import QUIET_SECONDS, SILENT_SECONDS, SilentNodes


class TurnedLoop:
    """Stands for a loop: what is to be called is called when its clock is turned that far."""

    def __init__(self) -> None:
        self._now = 0.0
        self._numbers = count()
        self._calls: list[tuple[float, int, Callable[[str], None], str]] = []

    def time(self) -> float:
        return self._now

    def call_at(self, at: float, call: Callable[[str], None], node: str) -> Mock:
        heapq.heappush(self._calls, (at, next(self._numbers), call, node))
        return Mock()

    def turn(self, to: float) -> None:
        while self._calls and self._calls[0][0] <= to:
            self._now, _, call, node = heapq.heappop(self._calls)
            call(node)
        self._now = to


class Handle:
    """Stands for a handle that always waits for something, of which it says since when."""

    def __init__(self, loop: TurnedLoop) -> None:
        self.loop = loop
        self.owes_since: float | None = None
        self.given_up_at: float | None = None
        self.probes = 0
        self.answers_probes = False
        self.silent = SilentNodes(lambda _: self.owes_since, self._probe, self._give_up)

    def ask(self) -> None:
        self.owes_since = self.loop.time()
        self.silent.on_asked("n")

    def _probe(self, node: str) -> None:
        self.probes += 1
        if self.answers_probes:
            self.silent.on_heard(node)

    def _give_up(self, _: str) -> None:
        self.given_up_at, self.owes_since = self.loop.time(), None


@pytest.fixture
def handle(monkeypatch: pytest.MonkeyPatch) -> Handle:
    loop = TurnedLoop()
    monkeypatch.setattr("tenure.columns.backends.silences.asyncio.get_running_loop", lambda: loop)
    return Handle(loop)


@pytest.mark.parametrize(
    "silent_from", [0.0, 0.01, QUIET_SECONDS - 0.01, QUIET_SECONDS + 0.01, 3.3]
)
def test_it_is_given_up_a_second_after_its_last_word(handle: Handle, silent_from: float) -> None:
    handle.ask()
    while handle.loop.time() < silent_from:
        handle.loop.turn(min(silent_from, handle.loop.time() + 0.1))
        handle.silent.on_heard("n")
        handle.ask()
    handle.loop.turn(10.0)
    assert handle.given_up_at == pytest.approx(silent_from + SILENT_SECONDS)
    assert handle.probes == 1


def test_a_node_that_answers_probes_is_waited_for(handle: Handle) -> None:
    handle.answers_probes = True
    handle.ask()
    handle.loop.turn(10.0)
    assert handle.given_up_at is None
    assert handle.probes > 3


def test_what_is_asked_after_a_long_quiet_time_has_its_time(handle: Handle) -> None:
    handle.ask()
    handle.silent.on_heard("n")
    handle.owes_since = None
    handle.loop.turn(20.0)
    handle.ask()
    handle.loop.turn(30.0)
    assert handle.given_up_at == pytest.approx(20.0 + SILENT_SECONDS)
