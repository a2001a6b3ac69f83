"""Finding the manager that leads: at once, then less and less often, never as one wave."""

from random import Random

from tenure.base.instants import FAR_FUTURE, Instant, seconds
from tenure.protocol.lease.search import FIRST_PAUSE_NS, LONGEST_PAUSE_NS, Patience, Search

NOW = Instant(seconds(100))


def pauses(seed: int, rounds: int) -> list[int]:
    search, now, found = Search(Random(seed)), NOW, []
    search.start(now)
    for _ in range(rounds):
        search.asked(now)
        found.append(search.at - now)
        now = search.at
    return found


def test_a_search_begins_at_once_and_ends_when_a_leader_is_found() -> None:
    search = Search(Random(1))
    assert not search.is_on
    search.start(NOW)
    assert (search.is_on, search.at) == (True, NOW)
    search.found()
    assert (search.is_on, search.at) == (False, FAR_FUTURE)


def test_a_search_that_is_on_is_not_begun_again() -> None:
    """Otherwise a client that each manager tells "I stand by" would ask them all again
    each time.
    """
    search = Search(Random(1))
    search.start(NOW)
    search.asked(NOW)
    at = search.at
    search.start(Instant(NOW + 1))
    assert search.at == at


def test_pauses_double_up_to_the_longest_and_are_jittered() -> None:
    for seed in range(20):
        found = pauses(seed, 8)
        for i, pause in enumerate(found):
            base = min(FIRST_PAUSE_NS << i, LONGEST_PAUSE_NS)
            assert base / 2 <= pause <= base * 3 / 2, f"seed {seed}, round {i}"
    assert len({pauses(seed, 1)[0] for seed in range(20)}) == 20


def test_the_next_search_begins_with_short_pauses() -> None:
    search = Search(Random(1))
    for _ in range(2):
        search.start(NOW)
        for _ in range(6):
            search.asked(NOW)
        search.found()
    search.start(NOW)
    search.asked(NOW)
    assert search.at - NOW <= FIRST_PAUSE_NS * 3 / 2


def test_who_knows_answers_to_be_slow_asks_no_faster_than_they_come() -> None:
    search, patience = Search(Random(1)), Patience()
    patience.answered(seconds(0.8))
    search.start(NOW)
    search.asked(NOW, shortest_ns=patience.needed_ns)
    assert search.at - NOW >= seconds(0.8)


# --- patience -------------------------------------------------------------------------------------


def test_a_repetition_waits_as_long_again_as_was_waited_already() -> None:
    patience, now, waits = Patience(), NOW, []
    for _ in range(5):
        waits.append(patience.asked(now, shortest_ns=10, longest_ns=100))
        now = Instant(now + waits[-1])
    assert waits == [10, 10, 20, 40, 80]
    assert patience.asked(now, 10, 100) == 100


def test_what_an_answer_took_is_waited_for_twice_from_then_on() -> None:
    patience = Patience()
    patience.answered(30)
    assert patience.asked(NOW, 10, 100) == 60
    patience.answered(70)
    assert patience.asked(NOW, 10, 100) == 100
    patience.answered(1)
    assert patience.asked(NOW, 10, 100) == 10
