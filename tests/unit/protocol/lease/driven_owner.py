"""An owner machine in each of its phases, and what it does there."""

from random import Random

from tenure.base.instants import Instant, seconds
from tenure.base.noted import Noted
from tenure.protocol.lease.client_events import ManagerSaid, TellManager
from tenure.protocol.lease.messages import (
    Expected,
    HandOff,
    Held,
    Introduction,
    Join,
    Leased,
    LeaseRequest,
    LeaseResponse,
    Mark,
    Process,
    Refusal,
    RefusalReason,
    ToManager,
    ToOwner,
)
from tenure.protocol.lease.owner import events
from tenure.protocol.lease.owner.machine import OwnerMachine
from tenure.protocol.lease.owner.transfer import Offer

TERM_NS, RENEW_NS = seconds(12), seconds(3)
JOURNAL, MANAGER_NONCE = 9, 77
T0 = Instant(0)
PROCESS = Process(boot_id="host", pid_namespace=1, time_namespace=1, pid=10, start_time=100)


def at(value: float) -> Instant:
    return Instant(seconds(value))


class Driven:
    """A machine, when it was last told anything, and what it did then."""

    def __init__(
        self,
        watchdog_ns: int | None = None,
        hand_off: str | None = None,
        reads_ns: int = 0,
        managers: tuple[str, ...] = ("a", "b"),
    ) -> None:
        config = events.OwnerConfig(
            managers=managers,
            pool="p",
            name="o",
            address="http://o",
            watchdog_ns=watchdog_ns,
            process=PROCESS,
            hand_off=hand_off,
            reads_ns=reads_ns,
        )
        self.machine = OwnerMachine(config, Random(1))
        self.now = T0
        self.actions: list[events.OwnerAction] = []
        self.wake_at = T0
        self.advance(T0)

    def advance(self, now: Instant) -> None:
        self.now = now
        self.actions, self.wake_at = self.machine.advance(now)
        assert self.wake_at > now, "it asks for ever to be advanced at the same instant"
        self.machine.invariants()

    def take(self, event: events.OwnerEvent, now: Instant | None = None) -> None:
        self.now = now or self.now
        self.actions, self.wake_at = self.machine.handle(self.now, event)
        self.machine.invariants()

    def hear(self, message: ToOwner, now: Instant | None = None, manager: str = "a") -> None:
        self.take(ManagerSaid(manager, message), now)

    def asked(self) -> list[ToManager]:
        return [action.message for action in self.actions if isinstance(action, TellManager)]

    def said(self) -> list[str]:
        return [action.kind.phrase for action in self.actions if isinstance(action, Noted)]

    def is_idle(self) -> bool:
        """Whether the last event led to nothing but notes."""
        return all(isinstance(action, Noted) for action in self.actions)


def introduction(driven: Driven, leadership: int = 1, journal: int = JOURNAL) -> Introduction:
    return Introduction(
        journal=journal,
        leadership=leadership,
        manager_nonce=MANAGER_NONCE,
        token=driven.machine.who_leads.token,
    )


def response(
    driven: Driven,
    *leases: Leased,
    incarnation: int = 1,
    copies: tuple[Held, ...] = (),
    orders: tuple[HandOff, ...] = (),
    expected: tuple[Expected, ...] = (),
) -> LeaseResponse:
    """The answer to its newest request."""
    machine = driven.machine
    return LeaseResponse(
        incarnation=incarnation,
        owner_nonce=machine.owner_nonce,
        sequence=machine.sequence,
        manager_nonce=machine.manager_nonce,
        journal=JOURNAL,
        leadership=machine.leadership,
        term_ns=TERM_NS,
        renew_ns=RENEW_NS,
        leases=leases,
        copies=copies,
        hand_offs=orders,
        expected=expected,
        receipt=b"sealed",
    )


def refusal(driven: Driven, reason: RefusalReason, retry_ns: int = 0) -> Refusal:
    machine = driven.machine
    return Refusal(
        owner_nonce=machine.owner_nonce,
        sequence=machine.sequence,
        manager_nonce=machine.manager_nonce,
        journal=JOURNAL,
        leadership=machine.leadership,
        reason=reason,
        detail="why",
        retry_after_ns=retry_ns,
    )


EXPECTED = Expected(start=b"", end=None, number=4, source=2, secret=77)
OFFER = Offer(
    pool="p", journal=JOURNAL, start=b"", end=None, number=4, source=2, taker=1, secret=77
)
ORDER = HandOff(start=b"", end=None, number=5, taker=2, address="ws://p")
"""The order to hand its range over to incarnation 2."""


def whole(mark: Mark = "renewed", number: int = 5) -> Leased:
    return Leased(start=b"", end=None, number=number, since=1, mark=mark)


# --- phases ---------------------------------------------------------------------------------------


def searching() -> Driven:
    return Driven()


def joining() -> Driven:
    driven = searching()
    driven.hear(introduction(driven))
    assert [type(message) for message in driven.asked()] == [Join]
    return driven


def numbered(driven: Driven | None = None) -> Driven:
    driven = driven or joining()
    driven.hear(response(driven))
    assert driven.machine.phase == "joined"
    return driven


def holding() -> Driven:
    """Return an owner that has asked nothing and holds everything, from 0 to 12."""
    driven = numbered()
    driven.hear(response(driven, whole("granted")))
    assert driven.machine.belief.leases == (whole(),)
    assert driven.machine.request is None
    return driven


def renewing() -> Driven:
    driven = holding()
    driven.advance(at(3))
    assert [type(message) for message in driven.asked()] == [LeaseRequest]
    return driven


def recalled() -> Driven:
    driven = renewing()
    driven.hear(response(driven, whole("recalled")))
    return driven


def handing_over() -> Driven:
    """It serves what it is to hand over, and has asked again."""
    driven = renewing()
    driven.hear(response(driven, whole(), orders=(ORDER,)))
    assert driven.actions[-1] == events.HandOver(ORDER)
    driven.advance(at(6))
    return driven


def giving() -> Driven:
    """The last difference is under way; nothing is asked."""
    driven = handing_over()
    driven.hear(response(driven, whole(), orders=(ORDER,)))
    driven.take(events.CopiedAhead(ORDER))
    assert driven.machine.belief.leases == ()
    assert driven.machine.request is None
    return driven


def handed() -> Driven:
    """Return an owner that has told the manager which incarnation has all of its state."""
    driven = giving()
    driven.take(events.HandedOver(ORDER))
    assert [type(message) for message in driven.asked()] == [LeaseRequest]
    return driven


def import_whole(driven: Driven) -> None:
    """All of what another handed over comes, as the manager announced."""
    driven.hear(response(driven, expected=(EXPECTED,)))
    driven.take(events.OfferMade(1, OFFER))
    assert driven.actions == [events.Admit(1)]
    driven.take(events.Imported(1))
    assert driven.actions == [events.Keep(1)]


def taking() -> Driven:
    """It holds nothing, has all of what another handed over, and says so."""
    driven = numbered()
    import_whole(driven)
    driven.advance(at(3))
    assert [type(message) for message in driven.asked()] == [LeaseRequest]
    return driven


def lapsed() -> Driven:
    driven = renewing()
    driven.advance(at(12))
    assert driven.machine.belief.leases == ()
    return driven


def refused() -> Driven:
    driven = joining()
    driven.hear(refusal(driven, "name_held", seconds(9)))
    return driven


def letting_go() -> Driven:
    driven = holding()
    driven.take(events.CloseRequested())
    return driven


def saying_goodbye() -> Driven:
    driven = letting_go()
    driven.hear(response(driven, whole()))
    driven.take(events.Revoked(1))
    assert driven.machine.request is not None
    assert driven.machine.request.is_last
    return driven


def closed() -> Driven:
    driven = saying_goodbye()
    driven.hear(response(driven))
    assert driven.actions[-1] == events.Closed()
    return driven


PHASES = (
    searching,
    joining,
    numbered,
    holding,
    renewing,
    recalled,
    handing_over,
    giving,
    handed,
    taking,
    lapsed,
    refused,
    letting_go,
    saying_goodbye,
    closed,
)
