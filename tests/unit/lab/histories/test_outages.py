"""The judge of outages: what counts is the time in which a quorum was up."""

import pytest

from lab.histories.outages import CallWatch, Spell, Stretch, outages, without_quorum
from tenure.base.instants import SECOND_NS

S = SECOND_NS
STRETCH = Stretch("c1", 10 * S, 20 * S, "too few replicas")


def longest(*spells: Spell) -> tuple[int, bool]:
    [found] = outages([STRETCH], spells)
    return found.length_ns // S, found.is_too_long


@pytest.mark.parametrize(
    ("spells", "length", "is_too_long"),
    [
        ((), 10, True),
        ((Spell("n1", 0, 30 * S),), 10, True),
        ((Spell("n1", 0, 30 * S), Spell("n2", 9 * S, 21 * S)), 0, False),
        ((Spell("n1", 0, 30 * S), Spell("n2", 12 * S, 18 * S)), 2, False),
        ((Spell("n1", 0, 30 * S), Spell("n2", 13 * S, 18 * S)), 3, True),
        ((Spell("n1", 0, 12 * S), Spell("n2", 14 * S, 30 * S)), 10, True),
        ((Spell("n1", 0, 13 * S), Spell("n2", 9 * S, 30 * S)), 7, True),
        (
            (Spell("n1", 0, 30 * S), Spell("n2", 0, 14 * S), Spell("n3", 12 * S, 18 * S)),
            2,
            False,
        ),
    ],
)
def test_a_handle_may_have_no_answer_while_two_nodes_are_in_trouble(
    spells: tuple[Spell, ...], length: int, is_too_long: bool
) -> None:
    assert longest(*spells) == (length, is_too_long)


def test_the_longest_outage_comes_first() -> None:
    stretches = [Stretch(f"c{n}", 0, n * S) for n in (1, 3, 2)]
    assert [str(each.stretch.client) for each in outages(stretches, ())] == ["c3", "c2", "c1"]


def test_times_without_a_quorum_are_those_with_two_nodes_in_trouble() -> None:
    spells = [Spell("n1", 1, 5), Spell("n2", 3, 9), Spell("n3", 4, 6), Spell("n1", 9, 12)]
    assert list(without_quorum(spells)) == [(3, 4), (4, 5), (5, 6)]


def test_a_stretch_lasts_from_the_first_call_without_an_answer_to_the_next_answer() -> None:
    watch = CallWatch("c1")
    watch.asks(1 * S)
    assert watch.answered(1 * S + 1) is None, "that is no stretch worth noting"
    watch.asks(3 * S)
    watch.fails(ValueError("first"))
    watch.asks(4 * S)
    watch.fails(ValueError("last"))
    watch.asks(5 * S)
    assert watch.answered(6 * S) == Stretch("c1", 3 * S, 6 * S, "last")
    assert watch.answered(9 * S) is None, "nothing was asked since"
