"""The events and actions of the owner machine."""

from typing import Literal, TypeAlias

import msgspec

from tenure.base.instants import Instant
from tenure.base.keys import PoolKind
from tenure.base.noted import Noted
from tenure.base.ranges import KeyRange
from tenure.protocol.lease.attestation import Sight
from tenure.protocol.lease.client_events import ManagerLost, ManagerSaid, ManagersNamed, TellManager
from tenure.protocol.lease.messages import (
    Attest,
    HandOff,
    Held,
    Hello,
    Join,
    Leased,
    Process,
    Refusal,
    ToOwner,
)
from tenure.protocol.lease.owner.transfer import Offer
from tenure.protocol.lease.rivalry import Rival

Phase = Literal["joining", "joined", "draining", "closing", "closed"]


class OwnerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of an owner machine; the manager says how long leases last (P7)."""

    managers: tuple[str, ...]
    pool: str
    name: str
    address: str
    kind: PoolKind | None = "hashed"
    capacity: float = 1.0
    labels: dict[str, str] = {}
    watchdog_ns: int | None = None
    process: Process | None = None
    """This process, if neighbours can be told apart; without it none can attest its death (P14)."""
    hand_off: str | None = None
    """The address at which the owner takes the state of ranges from other owners."""
    reads_ns: int = 0
    """The longest volume lease that it gives to caches; 0 if it gives none (V11)."""
    cache: str | None = None
    """The address at which the owner takes caches."""
    realm: str = ""
    """The realm of its managers; empty if it follows those of any."""

    def hello(self, token: int, journal: int, receipt: bytes, rival: Rival | None = None) -> Hello:
        """The question who leads, of an owner that has met that journal's history."""
        return Hello(
            pool=self.pool,
            token=token,
            journal=journal,
            name=self.name,
            receipt=receipt,
            rival=rival,
        )

    def join(self, owner_nonce: int, manager_nonce: int, sequence: int) -> Join:
        """The question to be numbered as an incarnation."""
        return Join(
            pool=self.pool,
            kind=self.kind,
            name=self.name,
            address=self.address,
            owner_nonce=owner_nonce,
            manager_nonce=manager_nonce,
            sequence=sequence,
            capacity=self.capacity,
            labels=self.labels,
            process=self.process,
            hand_off=self.hand_off,
            reads_ns=self.reads_ns,
            cache=self.cache,
            proves=True,
        )


class Holdings(msgspec.Struct, frozen=True):
    """All that the owner believes it holds, until `expires_at` on its clock."""

    journal: int
    incarnation: int
    leases: tuple[Leased, ...]
    expires_at: Instant
    unbroken: tuple[Held, ...] = ()
    """Ranges that were renumbered while they were held, by the number under which they were
    granted: a lease under that number, or one since, goes on."""
    reads_ns: int = 0
    """The longest volume lease that may be given: its manager knows of no longer one (V13)."""


class OwnerView(msgspec.Struct, frozen=True, kw_only=True):
    """An owner machine, as the shell that runs it may see it, beside its actions."""

    config: OwnerConfig
    phase: Phase
    journal: int
    incarnation: int
    leadership: int
    leases: int
    """How many leases it believes that it holds."""
    listed: int
    """How many its requests list, with those that the application has not let go of yet."""
    copies: int
    is_searching: bool
    """Whether a leader is being looked for."""
    renew_ns: int
    refusal: Refusal | None
    """The answer to its newest question, if that was a refusal."""


# --- events -------------------------------------------------------------------------------------


class Revoked(msgspec.Struct, frozen=True):
    """The application has done what a Revoke or a Forget asked for."""

    revocation: int


class ReadsEnded(msgspec.Struct, frozen=True):
    """No cache can still hit the revoked ranges. Only owners that give read leases say so (V12)."""

    revocation: int


class Lapsed(msgspec.Struct, frozen=True):
    """A reader saw the holdings expire before the machine was told the time, so they have expired
    (S3).
    """


class Alive(msgspec.Struct, frozen=True):
    """The application has shown that it does not hang."""


class CloseRequested(msgspec.Struct, frozen=True):
    """Return everything and leave."""


class DrainRequested(msgspec.Struct, frozen=True):
    """Hand everything over, or return it if nobody can take it, and leave."""

    waits: bool = False
    """Whether it would rather serve on than return what nobody can take: an owner may join. It may
    be asked again, with the other answer.
    """


class CopiedAhead(msgspec.Struct, frozen=True):
    """The taker has been given everything but the last difference."""

    order: HandOff


class HandedOver(msgspec.Struct, frozen=True):
    """The taker said that it has the whole."""

    order: HandOff


class HandOffFailed(msgspec.Struct, frozen=True):
    """The taker cannot be reached, or refuses the range."""

    order: HandOff


class OfferMade(msgspec.Struct, frozen=True):
    """Another owner offers state on a channel of that number; the answer is Admit or TurnAway."""

    channel: int
    offer: Offer


class Imported(msgspec.Struct, frozen=True):
    """All of the state that was admitted on that channel has come; the answer is Keep
    or TurnAway.
    """

    channel: int


class ArrivalEnded(msgspec.Struct, frozen=True):
    """No more state comes on that channel; what has come, if anything, is of no use."""

    channel: int


class ImportLost(msgspec.Struct, frozen=True):
    """Everything that was imported is gone."""

    range: KeyRange
    number: int


class Looked(msgspec.Struct, frozen=True):
    """The result of a look at a process, for which `manager` asked."""

    manager: str
    question: Attest
    sight: Sight


HandOffEvent: TypeAlias = (
    CopiedAhead | HandedOver | HandOffFailed | Imported | ArrivalEnded | ImportLost
)
OwnerEvent: TypeAlias = (
    ManagerSaid[ToOwner]
    | ManagerLost
    | ManagersNamed
    | Revoked
    | ReadsEnded
    | Lapsed
    | Alive
    | CloseRequested
    | DrainRequested
    | OfferMade
    | HandOffEvent
    | Looked
)


# --- actions ------------------------------------------------------------------------------------


class Hold(msgspec.Struct, frozen=True):
    """Believe in these holdings and nothing more from here on; this comes before any action after
    it.
    """

    holdings: Holdings


class Grant(msgspec.Struct, frozen=True):
    """Tell the application which ranges were granted to it."""

    leases: tuple[Leased, ...]


class Revoke(msgspec.Struct, frozen=True):
    """Tell the application which ranges it no longer holds; say Revoked when that is done, and if
    the owner gives read leases, ReadsEnded when no cache can hit any of them.
    """

    revocation: int
    leases: tuple[Leased, ...]
    deadline: Instant
    """When the term ends: a callback that is not done by then was too late."""
    kept: tuple[KeyRange, ...] = ()
    """The ranges that no other owner gets before Revoked is said, unless Overtaken comes first."""


class Overtaken(msgspec.Struct, frozen=True):
    """The manager, or the term, has not waited for the application to let go of these ranges:
    another owner may serve them from now on.
    """

    revocation: int
    ranges: tuple[KeyRange, ...]


class Look(msgspec.Struct, frozen=True):
    """Look at the process that `manager` asks about, and say Looked."""

    manager: str
    question: Attest


class HandOver(msgspec.Struct, frozen=True):
    """Begin to copy the range's state to the taker, while it is served; then say CopiedAhead."""

    order: HandOff


class SendLast(msgspec.Struct, frozen=True):
    """Send the last difference of a range that is no longer served; then say HandedOver."""

    order: HandOff


class StopHandOver(msgspec.Struct, frozen=True):
    """Stop handing over a range, or handing it to that owner, however far it has come."""

    order: HandOff


class Admit(msgspec.Struct, frozen=True):
    """Take the state that is offered on that channel; then say Imported, or ArrivalEnded."""

    channel: int


class TurnAway(msgspec.Struct, frozen=True):
    """Do not take the state that is offered on that channel, or stop taking it."""

    channel: int
    why: str


class Keep(msgspec.Struct, frozen=True):
    """The state that came on that channel counts from here on: tell its source so."""

    channel: int


class Forget(msgspec.Struct, frozen=True):
    """Discard the state of a range, as the lease of that number left it, since it is no longer of
    use, even if it is still arriving; then say Revoked.
    """

    revocation: int
    range: KeyRange
    number: int


class Closed(msgspec.Struct, frozen=True):
    """Everything is returned."""


OwnerAction: TypeAlias = (
    TellManager
    | Hold
    | Grant
    | Revoke
    | Overtaken
    | HandOver
    | SendLast
    | StopHandOver
    | Admit
    | TurnAway
    | Keep
    | Forget
    | Look
    | Closed
    | Noted
)
