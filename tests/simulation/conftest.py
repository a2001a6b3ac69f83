"""A test of the simulator hangs if it computes for long, not if a busy machine lets it wait.

Nothing here waits for anything, so that the clock on the wall measures the other processes only.
The limit of pyproject.toml, in seconds of that clock, would end worlds that go on well.
"""

import signal
from collections.abc import Iterator
from types import FrameType

import pytest

LIMIT_SECONDS = 120.0
"""CPU of one test. The longest takes a tenth of that."""


def _say_where(_: int, frame: FrameType | None) -> None:
    pytest.fail(f"it has computed for {LIMIT_SECONDS:g} s, and was at {frame}")


@pytest.fixture(autouse=True)
def ends_if_it_hangs() -> Iterator[None]:
    before = signal.signal(signal.SIGPROF, _say_where)
    signal.setitimer(signal.ITIMER_PROF, LIMIT_SECONDS)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)
