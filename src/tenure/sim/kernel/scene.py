"""The scene that all parts of a simulated world share: real time, the dice, and the story.

No process can see real time: each has a clock of its own. Only the world itself and the checkers
use it.
"""

import heapq
from collections import Counter
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

from tenure.base.instants import FAR_FUTURE
from tenure.sim.kernel.story import Story


class Scene:
    """Real time with its future events, the source of chance, and the story."""

    def __init__(self, random: Random, story: Story) -> None:
        self.random = random
        self.story = story
        self.now = 0
        self.notes: Counter[str] = Counter()
        self._queue: list[tuple[int, int, Callable[[Any], None], Any]] = []
        self._order = count()
        self._uids = count(1)

    def at(self, real: int, call: Callable[[Any], None], argument: Any) -> None:
        """Call `call` with `argument` at a real instant."""
        if real < FAR_FUTURE:
            heapq.heappush(self._queue, (real, next(self._order), call, argument))

    def run_until(self, real: int) -> None:
        """Let everything happen that is due before a real instant."""
        queue = self._queue
        while queue and queue[0][0] <= real:
            self.now, _, call, argument = heapq.heappop(queue)
            call(argument)
        # A call may itself have let time go on, and beyond this instant.
        self.now = max(self.now, real)

    def step(self, until: int) -> bool:
        """Let everything happen that is due at the next instant that has events, but not after
        `until`. Return whether there was such an instant.
        """
        there_is = bool(self._queue) and self._queue[0][0] <= until
        self.run_until(self._queue[0][0] if there_is else until)
        return there_is

    def next_uid(self) -> int:
        """A new number for a process."""
        return next(self._uids)

    def tell(self, who: str, what: str, detail: Any = "") -> None:
        """Note an event for the story."""
        self.story.tell(self.now, who, what, detail)

    def count_note(self, what: str) -> None:
        """Count something that a machine noted."""
        self.notes[what] += 1


def random_for(random: Random) -> Random:
    """A source of chance of the caller's own, so that its draws do not change what others draw."""
    return Random(random.getrandbits(64))
