"""An application that does not let go of ranges: it is offered none of them, but others are."""

from tenure.base.rangemap import RangeMap
from tenure.base.ranges import WHOLE
from tenure.protocol.balance.policy import NOBODY, Plan, Situation
from tenure.protocol.lease.answers import KeyExplained, Owners
from tenure.protocol.lease.leader.events import ListOwners
from tenure.protocol.lease.leader.questions import answer
from tenure.protocol.lease.messages import Held, LeaseRequest, LeaseResponse
from tenure.protocol.lease.records import Changed, Steering
from tenure.protocol.lease.steering_events import ExplainKey
from tenure.protocol.lease.timing import DEFAULT
from tests.unit.protocol.lease.desk import SEAL, Desk, at, marks

A, B = 101, 102
STUCK = "owner stuck: its application does not let go of ranges"


def all_to_the_first(situation: Situation) -> Plan:
    there = [each.incarnation for each in situation.candidates if not each.cordoned]
    there = there or [each.incarnation for each in situation.candidates]
    return Plan(RangeMap(min(there) if there else NOBODY), RangeMap(None))


class Hanging:
    """Owners a and b; a had everything, has lost it, and its callback runs."""

    def __init__(self) -> None:
        self.desk = Desk(all_to_the_first)
        self.a = self.desk.owner(at(0), "a", A)
        self.desk.settle(at(0.5), self.a, A)
        self.b = self.desk.owner(at(0.6), "b", B)

    def ask(self, seconds: float, *, hangs: bool = True) -> LeaseResponse:
        desk = self.desk
        desk.sequence += 1
        request = LeaseRequest(
            pool="p",
            incarnation=self.a,
            owner_nonce=A,
            manager_nonce=SEAL.nonce,
            sequence=desk.sequence,
            journal=SEAL.journal,
            leadership=SEAL.leadership,
            held=(),
            letting_go=(Held(start=b"", end=None, number=0),) if hangs else (),
        )
        desk.advance(at(seconds))
        desk.pool.on_request(at(seconds), A, request)
        said = desk._answer(A)
        assert isinstance(said, LeaseResponse)
        return said


def test_what_the_application_has_not_let_go_of_is_not_granted_in_vain() -> None:
    it = Hanging()
    number = it.desk.pool.table.next_number
    for i in range(5):
        assert it.ask(1 + i).leases == ()
    assert it.desk.pool.table.next_number == number + 1, "freed once, and granted to nobody"
    assert marks(it.ask(5.9, hangs=False)) == [(b"", None, "granted")]
    assert STUCK not in it.desk.notes


def test_after_a_while_others_are_given_it_and_it_is_shown_as_stuck() -> None:
    it = Hanging()
    bound = DEFAULT.recall_ns / 1e9
    it.ask(1)
    it.ask(1 + bound)
    assert it.desk.notes.count(STUCK) == 1
    it.desk.advance(at(2 + bound))
    held = it.desk.settle(at(2 + bound), it.b, B)
    assert [item.range for item in held] == [WHOLE]
    owners = answer(at(9), {"p": it.desk.pool}, ListOwners("p"))
    assert isinstance(owners, Owners)
    assert [each.steering for each in owners.owners] == ["stuck", ""]
    steered = Steering(drained=("a",), cordoned=("b",))
    it.desk.context.write(Changed(pool="p", entries=(), steering=steered))
    owners = answer(at(9), {"p": it.desk.pool}, ListOwners("p"))
    assert isinstance(owners, Owners)
    assert [each.steering for each in owners.owners] == ["drained, stuck", "cordoned"]
    why = answer(at(9), {"p": it.desk.pool}, ExplainKey(pool="p", key=b"k"))
    assert isinstance(why, KeyExplained)
    assert (why.owner and why.owner.name, why.stuck) == ("b", ("a",))
    it.ask(3 + bound, hangs=False)
    assert not it.desk.pool.sessions[it.a].stuck
