"""The nearest replica is chosen by rack and data centre first, and then by how soon it answers
(5.7).
"""

from itertools import count

import pytest

from tenure.base.instants import MILLISECOND_NS, SECOND_NS, Instant
from tenure.protocol.replication.delays import MOST_ASKED, Delays

TICKETS = count(1)


def answers(delays: Delays, node: int, milliseconds: int, times: int = 50, at: int = 0) -> None:
    """It is asked and answers, again and again."""
    for _ in range(times):
        ticket = next(TICKETS)
        delays.asked(Instant(at), ticket, node)
        delays.answered(Instant(at + milliseconds * MILLISECOND_NS), ticket)


def same(node: int) -> int:
    del node
    return 0


def test_of_two_at_the_same_distance_the_one_that_answers_sooner_is_nearer() -> None:
    delays = Delays()
    answers(delays, 1, 40)
    answers(delays, 2, 3)
    assert delays.nearest(Instant(0), [1, 2], same) == (2, 1)


def test_a_rack_counts_more_than_a_delay() -> None:
    delays = Delays()
    answers(delays, 1, 40)
    answers(delays, 2, 3)
    assert delays.nearest(Instant(0), [2, 1], lambda node: int(node == 2)) == (1, 2)


@pytest.mark.parametrize(("one", "other"), [(5, 6), (0, 0)])
def test_a_small_difference_changes_nothing(one: int, other: int) -> None:
    delays = Delays()
    answers(delays, 1, other)
    answers(delays, 2, one)
    assert delays.nearest(Instant(0), [1, 2], same) == (1, 2)


def test_who_does_not_answer_is_far_and_is_tried_again_later() -> None:
    delays = Delays()
    for node in (1, 2):
        answers(delays, node, 2)
    delays.asked(Instant(0), next(TICKETS), 1)
    now = Instant(3 * SECOND_NS)
    assert delays.nearest(now, [1, 2], same) == (2, 1)
    much_later = Instant(60 * SECOND_NS)
    delays.nearest(much_later, [1, 2], same)
    assert delays.nearest(much_later, [1, 2], same) == (1, 2)


def test_who_was_slow_once_is_tried_again_when_that_is_forgotten() -> None:
    delays = Delays()
    answers(delays, 1, 4)
    looks = 0
    while delays.nearest(Instant(looks * SECOND_NS), [1, 2], same) == (2, 1):
        looks += 1
    assert 10 < looks < 120


def test_questions_without_end_are_not_remembered_without_end() -> None:
    delays = Delays()
    for ticket in range(MOST_ASKED + 10):
        delays.asked(Instant(0), ticket, 1)
    assert len(delays._asked) == MOST_ASKED


def test_it_is_looked_once_in_a_second() -> None:
    delays = Delays()
    delays.nearest(Instant(0), [1], same)
    delays.asked(Instant(0), 1, 1)
    assert not delays.answered(Instant(1), 1)
    delays.asked(Instant(0), 2, 1)
    assert delays.answered(Instant(SECOND_NS), 2)
    assert not delays.answered(Instant(SECOND_NS), 2), "it was asked once"
