"""The one thread in which a manager runs policies, in the order in which its machine asks.

It is not an executor of the standard library: Python waits for their threads when it exits, and a
policy that never returns would keep a manager from stopping.
"""

from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread

from tenure.protocol.balance.planning import Planning
from tenure.protocol.lease.leader.events import PlanMade


class PlanningThread:
    """The thread; it begins with the first question."""

    def __init__(self, tell: Callable[[PlanMade], None]) -> None:
        self._tell = tell
        """Is told the result, in the thread."""
        self._asked: SimpleQueue[Planning | None] = SimpleQueue()
        self._thread: Thread | None = None

    def ask(self, work: Planning) -> None:
        """Ask a policy when those that were asked before have returned."""
        if self._thread is None:
            self._thread = Thread(target=self._run, name="tenure-planner", daemon=True)
            self._thread.start()
        self._asked.put(work)

    def stop(self) -> None:
        """End, without waiting, when the policy that is being asked has returned."""
        while not self._asked.empty():
            self._asked.get()
        self._asked.put(None)

    def _run(self) -> None:
        while (work := self._asked.get()) is not None:
            self._tell(PlanMade(work, work.carry_out()))
