"""Every story up to a bound: breadth-first search, with choices for dice.

The random simulator finds deep faults; this search finds short ones, and shows each in the fewest
possible steps. Where the simulator draws, the search chooses: each thing that might go one way or
another asks `Choices`, and the search takes the same step again, from the same state, until every
answer was given. It does not go on again from a state that it has met before.

So a step must follow from the state and the answers alone. Then the search need not keep stories: a
story is the answers that lead to it, and can be shown by taking its steps once more.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from typing import NamedTuple, Protocol, TypeVar

from tenure.sim.kernel.checkers import Violation

S = TypeVar("S", bound=Hashable)
Answers = tuple[int, ...]
MOST_STATES = 1_000_000


class Choices:
    """Replaces dice: each question gets every answer in turn."""

    def __init__(self, answers: Answers = (), told: list[str] | None = None) -> None:
        self._answers = list(answers)
        self._counts = [0] * len(answers)
        self._asked = 0
        self._told = told

    def choose(self, count: int) -> int:
        """Choose an answer from 0 up to, but not including, `count`."""
        place = self._asked
        self._asked += 1
        if place == len(self._answers):
            self._answers.append(0)
            self._counts.append(count)
        return self._answers[place]

    @property
    def answers(self) -> Answers:
        """The answers that were given since the step began."""
        return tuple(self._answers)

    def turn(self) -> bool:
        """Prepare the next way to take the same step. Returns whether there is another."""
        while self._answers and self._answers[-1] + 1 >= self._counts[-1]:
            self._answers.pop()
            self._counts.pop()
        self._asked = 0
        if self._answers:
            self._answers[-1] += 1
        return bool(self._answers)

    def tell(self, text: Callable[[], str]) -> None:
        """Note a line of the story, if this step is taken in order to tell it."""
        if self._told is not None:
            self._told.append(text())


class Searchable(Protocol[S]):
    """A world as the search sees it: states that can be compared, and their possible successors."""

    def first(self) -> S:
        """The state where every story begins."""
        ...

    def step(self, state: S, choices: Choices) -> S | None:
        """The next state, as chosen; None if nothing can follow. Raises Violation or
        AssertionError.
        """
        ...


class Found(NamedTuple):
    """The result of a search."""

    states: int
    steps: int
    violation: str | None = None
    story: tuple[str, ...] = ()
    """The shortest story that ends in the violation."""
    complete: bool = False
    """Whether the search saw every story."""

    def __str__(self) -> str:
        what = self.violation or f"every promise kept{'' if self.complete else ', so far'}"
        return "\n".join((f"{self.states:,} states, {self.steps:,} steps: {what}", *self.story))


def search(world: Searchable[S], most_states: int = MOST_STATES) -> Found:
    """Look at every story, the shortest first, until a promise is broken."""
    first = world.first()
    came_from: dict[int, tuple[int, Answers]] = {hash(first): (0, ())}
    frontier = deque([first])
    steps = 0
    while frontier and len(came_from) < most_states:
        state = frontier.popleft()
        origin, choices, there_is_more = hash(state), Choices(), True
        while there_is_more:
            try:
                then = world.step(state, choices)
            except (Violation, AssertionError) as error:
                answers = (*_answers(came_from, origin), choices.answers)
                is_promise = isinstance(error, Violation)
                violation = str(error) if is_promise else f"invariant: {error!r}"
                return Found(len(came_from), steps, violation, _story(world, answers))
            if then is not None:
                steps += 1
                fingerprint = hash(then)
                if fingerprint not in came_from:
                    came_from[fingerprint] = (origin, choices.answers)
                    frontier.append(then)
            there_is_more = choices.turn()
    return Found(len(came_from), steps, complete=not frontier)


def _answers(came_from: dict[int, tuple[int, Answers]], fingerprint: int) -> Iterator[Answers]:
    """The answers that lead to a state, step by step."""
    steps = []
    while came_from[fingerprint] != (0, ()):
        fingerprint, answers = came_from[fingerprint]
        steps.append(answers)
    return reversed(steps)


def _story(world: Searchable[S], steps: tuple[Answers, ...]) -> tuple[str, ...]:
    """The lines that the steps tell, with each step's first line as its head."""
    state: S | None = world.first()
    lines: list[str] = []
    for answers in steps:
        told: list[str] = []
        assert state is not None
        try:
            state = world.step(state, Choices(answers, told))
        except (Violation, AssertionError):
            state = None  # the story ends with this error
        lines += told[:1] + [f"    {line}" for line in told[1:]]
    return tuple(lines)
