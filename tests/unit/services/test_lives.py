"""Names of lives and versions: none comes twice, and the later of two is known."""

from tenure import Lease
from tenure.services.lives import came_before, journal_of, new_name


def lease(number: int, journal: int = 0xA) -> Lease:
    return Lease(b"k" * 8, number, journal)


def test_a_later_name_is_known_within_a_lease_and_under_the_next() -> None:
    first, second, third = new_name(lease(9)), new_name(lease(9)), new_name(lease(10))
    assert came_before(first, second)
    assert came_before(second, third)
    assert came_before(first, third)
    assert not came_before(third, first)
    assert not came_before(first, first)


def test_names_of_two_journals_do_not_say_which_is_the_later() -> None:
    one, other = new_name(lease(9)), new_name(lease(10, 0xB))
    assert not came_before(one, other)
    assert not came_before(other, one)
    assert (journal_of(one), journal_of(other)) == ("a", "b")
