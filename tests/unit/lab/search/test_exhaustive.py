"""The search asks every question in every way, and tells the shortest story."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from lab.search.exhaustive import Choices, search
from tenure.sim.kernel.checkers import Violation


@given(st.lists(st.integers(1, 4), max_size=4))
def test_every_combination_of_answers_comes_up_once(counts: list[int]) -> None:
    choices, came = Choices(), []
    while True:
        came.append(tuple(choices.choose(count) for count in counts))
        assert choices.answers == came[-1]
        if not choices.turn():
            break
    assert came == list(product(*map(range, counts)))


def test_what_is_asked_may_depend_on_what_was_answered() -> None:
    choices, came = Choices(), []
    while True:
        first = choices.choose(3)
        came.append((first, *(choices.choose(2) for _ in range(first))))
        if not choices.turn():
            break
    assert came == [(0,), (1, 0), (1, 1), (2, 0, 0), (2, 0, 1), (2, 1, 0), (2, 1, 1)]


class Counter:
    """Adds one, or doubles, up to a limit; the limit must not be met exactly."""

    def __init__(self, limit: int, forbidden: int) -> None:
        self.limit = limit
        self.forbidden = forbidden

    def first(self) -> int:
        return 1

    def step(self, state: int, choices: Choices) -> int | None:
        then = (state + 1, 2 * state)[choices.choose(2)]
        choices.tell(lambda: f"{state} becomes {then}")
        choices.tell(lambda: f"which is {'odd' if then % 2 else 'even'}")
        if then == self.forbidden:
            raise Violation("forbidden", str(then))
        return then if then <= self.limit else None


def test_the_story_is_the_shortest_and_is_told_step_by_step() -> None:
    found = search(Counter(100, forbidden=10))
    assert found.violation == "forbidden: 10"
    assert found.story == (
        "1 becomes 2",
        "    which is even",
        "2 becomes 4",
        "    which is even",
        "4 becomes 5",
        "    which is odd",
        "5 becomes 10",
        "    which is even",
    )
    assert not found.complete


def test_where_nothing_is_wrong_every_state_is_seen() -> None:
    found = search(Counter(100, forbidden=0))
    assert (found.states, found.violation, found.complete) == (100, None, True)
    assert str(found) == f"100 states, {found.steps} steps: every promise kept"


def test_a_search_that_is_cut_off_says_so() -> None:
    found = search(Counter(100, forbidden=0), most_states=50)
    assert not found.complete
    assert str(found).endswith("every promise kept, so far")


def test_a_failed_assertion_is_found_too() -> None:
    class Wrong(Counter):
        def step(self, state: int, choices: Choices) -> int | None:
            assert state < 3, "three"
            return super().step(state, choices)

    found = search(Wrong(100, forbidden=0))
    assert found.violation is not None
    assert found.violation.startswith("invariant: AssertionError('three")
    assert found.story[:3:2] == ("1 becomes 2", "2 becomes 3")
