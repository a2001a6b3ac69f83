"""A bug in what answers a question, at any place."""

import gc
import sys
from collections.abc import Callable, Collection
from types import CodeType, FrameType
from typing import Any, Self

from tenure.protocol.lease.leader import questions
from tenure.protocol.lease.leader.explaining import read_plan
from tenure.protocol.lease.leader.leader import Leader
from tenure.protocol.lease.leader.planner import Planner
from tenure.protocol.topology.leader import TopologyLeader

ANSWERING = (
    questions.answer.__code__,
    TopologyLeader.answer.__code__,
    Planner.planning.__code__,
    read_plan.__code__,
)
COMMANDED = (Leader.on_asked.__code__, Leader.on_plan_made.__code__)
"""The functions that carry out commands."""
Tracing = Callable[[FrameType, str, Any], Any] | None


class Broken(Exception):
    """Raised where no code expects it."""


class Breaking:
    """Raises at one call of a function, of those that an answer leads to; and counts them."""

    def __init__(
        self,
        place: int | None = None,
        error: Exception | None = None,
        answering: Collection[CodeType] = ANSWERING,
    ) -> None:
        self.place, self.error = place, error or Broken()
        self.answering = answering
        self.calls, self._depth = 0, 0
        self._begun: set[FrameType] = set()
        """A generator is called again and again, also to end it, and then it raises to nobody."""
        self._before: Any = None

    def __enter__(self) -> Self:
        self._before = sys.gettrace()
        gc.disable()  # or what others have called at each collection is broken off
        sys.settrace(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)
        gc.enable()

    def _called(self, frame: FrameType, event: str, _: object) -> Tracing:
        assert event == "call"
        if not self._depth and frame.f_code not in self.answering:
            return None
        self._depth += 1
        if frame not in self._begun:
            self._begun.add(frame)
            self.calls += 1
            if self.calls == self.place:
                raise self.error
        return self._within

    def _within(self, _: FrameType, event: str, __: object) -> Tracing:
        if event == "return":
            self._depth -= 1
        return self._within
