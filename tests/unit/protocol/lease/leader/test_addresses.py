"""Several owners that announce one address, as the workers of one web server do."""

from tenure.base.instants import Instant
from tenure.base.ranges import WHOLE
from tenure.protocol.lease.answers import Owners
from tenure.protocol.lease.leader.events import ListOwners
from tenure.protocol.lease.leader.questions import answer
from tenure.protocol.lease.messages import LeaseResponse
from tests.unit.protocol.lease.desk import ByName, Desk, at, listed

A, B, C = 101, 102, 103
PORT = "http://host:8000"
SHARED = "owners share an address"


class Workers:
    """Owners at one port."""

    def __init__(self) -> None:
        self.desk = Desk(ByName((WHOLE, "a")))

    def join(self, seconds: float, name: str, nonce: int, address: str = PORT) -> int:
        joined = self.desk.join(at(seconds), name, nonce, address=address)
        assert isinstance(joined, LeaseResponse)
        return joined.incarnation

    def ask(self, seconds: float, incarnation: int, nonce: int, *, leaving: bool = False) -> str:
        """Ask, and return what the answer says of other owners at the address."""
        held = self.desk.pool.table.held_by(incarnation)
        now = at(seconds)
        said = self.desk.ask(now, incarnation, nonce, held, leaving=leaving)
        assert isinstance(said, LeaseResponse)
        assert listed(said) is not None
        return said.same_address

    def in_owners(self, now: Instant) -> list[str]:
        said = answer(now, {"p": self.desk.pool}, ListOwners("p"))
        assert isinstance(said, Owners)
        return [each.same_address for each in said.owners]

    @property
    def warnings(self) -> int:
        return self.desk.notes.count(SHARED)


def test_two_living_owners_at_one_address_are_told_and_the_log_says_it_once() -> None:
    workers = Workers()
    a, b = workers.join(0, "a", A), workers.join(1, "b", B)
    assert workers.ask(1.1, b, B) == ""
    assert workers.ask(3, a, A) == "b"
    assert workers.ask(3.1, b, B) == "a"
    c = workers.join(4, "c", C)
    assert [workers.ask(6, a, A), workers.ask(6.1, c, C)] == ["b", "a"]
    assert workers.warnings == 1
    assert workers.in_owners(at(6.2)) == ["b", "a", "a"]


def test_a_process_in_the_place_of_a_dead_one_shares_nothing() -> None:
    """It announces the same address, and the dead one's hold still runs."""
    workers = Workers()
    a = workers.join(0, "a", A)
    workers.ask(0.1, a, A)
    b = workers.join(1, "b", B)
    assert [workers.ask(seconds, b, B) for seconds in (1.1, 4, 7)] == ["", "", ""]
    assert workers.in_owners(at(7)) == ["", ""]
    assert workers.warnings == 0


def test_who_leaves_shares_nothing_with_its_successor() -> None:
    """A server that is replaced may serve on the same port until it has left."""
    workers = Workers()
    a, b = workers.join(0, "a", A), workers.join(1, "b", B)
    assert workers.ask(3, a, A, leaving=True) == ""
    assert workers.ask(3.1, b, B) == ""
    assert workers.warnings == 0


def test_who_leaves_after_it_was_heard_beside_its_successor_shares_nothing_any_more() -> None:
    workers = Workers()
    a = workers.join(0, "a", A)
    assert [workers.ask(seconds, a, A) for seconds in (0.1, 0.5)] == ["", ""]
    b = workers.join(1, "b", B)
    assert workers.ask(3, a, A, leaving=True) == ""
    assert a in workers.desk.pool.sessions, "it still gives back what it has"
    assert workers.ask(3.1, b, B) == ""


def test_who_has_lost_its_connection_shares_nothing_until_it_is_heard_again() -> None:
    workers = Workers()
    a, b = workers.join(0, "a", A), workers.join(1, "b", B)
    assert workers.ask(3, a, A) == "b"
    workers.desk.pool.on_disconnected(A)
    assert workers.ask(3.1, b, B) == ""
    assert workers.ask(6, a, A) == "b"


def test_of_owners_that_come_later_to_an_address_it_is_said_again() -> None:
    workers = Workers()
    a = workers.join(0, "a", A)
    workers.join(1, "b", B)
    assert workers.ask(3, a, A) == "b"
    workers.desk.advance(at(40))
    assert not workers.desk.pool.sessions
    a = workers.join(41, "a", A + 9)
    workers.join(42, "b", B + 9)
    assert workers.ask(43, a, A + 9) == "b"
    assert workers.warnings == 2


def test_owners_at_addresses_of_their_own_share_nothing() -> None:
    workers = Workers()
    a, b = workers.join(0, "a", A, "http://a"), workers.join(1, "b", B, "http://b")
    assert [workers.ask(3, a, A), workers.ask(3.1, b, B)] == ["", ""]


def test_when_the_other_is_gone_the_owner_shares_nothing_any_more() -> None:
    workers = Workers()
    a, b = workers.join(0, "a", A), workers.join(1, "b", B)
    assert workers.ask(3, a, A) == "b"
    workers.desk.advance(at(15.9))  # b is not heard any more, and its hold has run out
    assert b not in workers.desk.pool.sessions
    assert workers.ask(15.95, a, A) == ""
    assert workers.in_owners(at(16)) == [""]
    assert workers.warnings == 1
