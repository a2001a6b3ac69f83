"""A leader's desk for tests: one pool, a journal that commits when told to, and what was said."""

from typing import TypeVar

from tenure.base.instants import Instant, seconds
from tenure.base.keys import Key, PoolKind
from tenure.base.noted import Noted
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange
from tenure.protocol.balance.policy import NOBODY, Plan, Policy, Situation
from tenure.protocol.lease.history import LeaseHistory
from tenure.protocol.lease.leader.context import LeaderContext, Seal
from tenure.protocol.lease.leader.events import ManagerAction, TellClient, TellClients
from tenure.protocol.lease.leader.pool import Pool
from tenure.protocol.lease.load_report import LoadReport
from tenure.protocol.lease.messages import (
    Copy,
    FromManager,
    Held,
    Join,
    LeaseRequest,
    LeaseResponse,
    Poke,
    Refusal,
)
from tenure.protocol.lease.records import AnyRecord, PoolCreated, State, WaitedOut
from tenure.protocol.lease.timing import DEFAULT, Timing
from tenure.protocol.log.journal import Append, Committed

T0 = Instant(0)
SEAL = Seal(journal=9, leadership=1, nonce=77)
LOW, HIGH = KeyRange(b"", b"m"), KeyRange(b"m", None)
M = TypeVar("M", bound=FromManager)


def at(value: float) -> Instant:
    return Instant(seconds(value))


class ByName:
    """A policy: each range goes to the first of its names that is a member."""

    def __init__(self, *wanted: tuple[KeyRange, str]) -> None:
        self.wanted = [(key_range, names.split()) for key_range, names in wanted]

    def __call__(self, situation: Situation) -> Plan:
        there = {each.name: each.incarnation for each in situation.candidates}
        plan = RangeMap(NOBODY)
        for key_range, names in self.wanted:
            taker = next((there[name] for name in names if name in there), NOBODY)
            plan.assign(key_range, taker)
        return Plan(plan, RangeMap(None))


class Unrivalled:
    """A leadership that nobody can contest."""

    is_proven = True


class Desk:
    """An office and a pool `p`. Connections are numbered as the owners' nonces."""

    def __init__(
        self,
        policy: Policy,
        timing: Timing = DEFAULT,
        *,
        state: State | None = None,
        inherited_until: Instant = T0,
        kind: PoolKind = "ordered",
        split_points: tuple[Key, ...] = (),
    ) -> None:
        self.context = LeaderContext(SEAL, timing, LeaseHistory(state or State(), 0), Unrivalled())
        self.context.inherited_until = inherited_until
        if state is None:
            self.context.write(WaitedOut())
            self.context.write(PoolCreated(pool="p", kind=kind, split_points=split_points))
        self.policy = policy
        self.pool = Pool(self.context, self.context.history.tables["p"], policy)
        self.records: list[AnyRecord] = []
        self.said: list[tuple[int, FromManager]] = []
        self.notes: list[str] = []
        self.lines: list[str] = []
        """The same, as the log has it."""
        self.sequence = 0
        self.commit()

    def commit(self) -> None:
        """Let the journal commit all that was written, and note what is said then."""
        while actions := self.context.take_actions():
            for action in actions:
                self._take(action)
        self.pool.invariants()
        self.context.history.invariants()
        self.context.ledger.invariants()

    def _take(self, action: ManagerAction) -> None:
        match action:
            case Append(after_lsn=after_lsn, records=records):
                self.records.extend(records)
                self.context.on_appended(T0, Committed(after_lsn + len(records)))
            case TellClient(connection=connection, message=message):
                self.said.append((connection, message))
            case TellClients(connections=connections, message=message):
                self.said.extend((connection, message) for connection in connections)
            case Noted() as noted:
                self.notes.append(noted.kind.phrase)
                self.lines.append(noted.text)

    def told(self, connection: int, kind: type[M]) -> list[M]:
        """Return what was said to somebody, of one kind, since this was last asked."""
        found: list[M] = [m for c, m in self.said if c == connection and isinstance(m, kind)]
        self.said = [(c, m) for c, m in self.said if not (c == connection and isinstance(m, kind))]
        return found

    def pokes(self, nonce: int) -> int:
        return len(self.told(nonce, Poke))

    # --- owners ---

    def join(
        self,
        now: Instant,
        name: str,
        nonce: int,
        sequence: int | None = None,
        *,
        hand_off: bool = False,
        address: str = "",
        reads_s: float = 0,
    ) -> LeaseResponse | Refusal | None:
        """Let somebody join, and return the answer. An owner that can `hand_off` takes state at an
        address of its own.
        """
        self.sequence += 1
        join = Join(
            pool="p",
            kind=None,
            name=name,
            address=address or f"http://{name}",
            owner_nonce=nonce,
            manager_nonce=SEAL.nonce,
            sequence=sequence or self.sequence,
            hand_off=f"ws://{name}" if hand_off else None,
            reads_ns=seconds(reads_s),
            cache=f"ws://{name}/caches" if reads_s else None,
        )
        self.advance(now)
        self.pool.on_join(now, nonce, join)
        return self._answer(nonce)

    def ask(
        self,
        now: Instant,
        incarnation: int,
        nonce: int,
        held: tuple[Held, ...],
        *,
        sequence: int | None = None,
        leaving: bool = False,
        copies: tuple[Copy, ...] = (),
        load: LoadReport | None = None,
        knows_former: bool = False,
        letting_go: tuple[Held, ...] = (),
    ) -> LeaseResponse | Refusal | None:
        """An owner asks; the answer."""
        self.sequence += 1
        request = LeaseRequest(
            pool="p",
            incarnation=incarnation,
            owner_nonce=nonce,
            manager_nonce=SEAL.nonce,
            sequence=sequence or self.sequence,
            journal=SEAL.journal,
            leadership=SEAL.leadership,
            held=held,
            leaving=leaving,
            copies=copies,
            load=load,
            knows_former=knows_former,
            letting_go=letting_go,
        )
        self.advance(now)
        self.pool.on_request(now, nonce, request)
        return self._answer(nonce)

    def _answer(self, nonce: int) -> LeaseResponse | Refusal | None:
        self.commit()
        refusals, responses = self.told(nonce, Refusal), self.told(nonce, LeaseResponse)
        assert len(refusals) + len(responses) <= 1
        if refusals:
            return refusals[0]
        return responses[0] if responses else None

    def owner(
        self, now: Instant, name: str, nonce: int, *, hand_off: bool = False, reads_s: float = 0
    ) -> int:
        """An owner that has joined, and shown that it lives; its incarnation."""
        joined = self.join(now, name, nonce, hand_off=hand_off, reads_s=reads_s)
        assert isinstance(joined, LeaseResponse), joined
        self.ask(now, joined.incarnation, nonce, ())
        return joined.incarnation

    def settle(self, now: Instant, incarnation: int, nonce: int) -> tuple[Held, ...]:
        """The owner asks until it is told nothing new; what it then holds."""
        held = self.pool.table.held_by(incarnation)
        for _ in range(3):
            answer = self.ask(now, incarnation, nonce, held)
            assert isinstance(answer, LeaseResponse)
            held = listed(answer)
        return held

    def advance(self, now: Instant) -> None:
        self.pool.advance(now)
        self.commit()

    def owner_of(self, key: Key) -> int:
        return self.pool.table.rights[key].owner


def listed(answer: LeaseResponse | Refusal | None) -> tuple[Held, ...]:
    """Return what an owner that believed all of the answer would list next."""
    assert isinstance(answer, LeaseResponse), answer
    return tuple(
        Held(start=lease.start, end=lease.end, number=lease.number) for lease in answer.leases
    )


def marks(answer: LeaseResponse | Refusal | None) -> list[tuple[Key, Key | None, str]]:
    assert isinstance(answer, LeaseResponse), answer
    return [(lease.start, lease.end, lease.mark) for lease in answer.leases]
