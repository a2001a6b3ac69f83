"""The messages between owners, lookups and managers.

Owners ask and the manager answers (rule P1): it never sends a set of leases unasked, only a `Poke`,
an empty hint to ask now. So two messages can never cross in flight and contradict each other, the
race of Centrifuge 2.3.2 that its manager-sent messages need drops and random backoffs for.

Every message has a number, and is sealed with both sides' nonces (rule P2). The owner takes only
the answer to its newest request; the manager takes requests in rising order and only with its own
present nonce. A request lists everything its owner holds, an answer everything it may hold (P4,
P5): what is not listed is not held.

Messages are made with keywords only: many fields are adjacent numbers, and two of them would easily
be exchanged. Fields are only ever added at the end, with defaults. Every field has a
limit, which its type says: nothing larger is ever decoded.
"""

from typing import Annotated, Literal, TypeAlias

import msgspec

from tenure.base.keys import PoolKind
from tenure.base.numbers import BootId, Fingerprint, JournalId, Nonce, Number, ReceiptBytes
from tenure.protocol.lease import limits
from tenure.protocol.lease.causes import Cause
from tenure.protocol.lease.load_report import LoadReport
from tenure.protocol.lease.port_proof import PortProof
from tenure.protocol.lease.range_item import RangeItem
from tenure.protocol.lease.reports import TierReport
from tenure.protocol.lease.rivalry import JournalsOver, Realm, Rival, Successions
from tenure.protocol.lease.table_columns import TableColumns

Name: TypeAlias = Annotated[
    str, msgspec.Meta(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+\Z")
]
"""The name of a pool or an owner: it stands in URLs, logs and terminals, so it has no control
characters.
"""
Address: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]
"""In any form that clients of the pool understand; as long as the longest URL that is safe."""
TEXT_CHARACTERS = 2000
Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=TEXT_CHARACTERS)]
"""A text for people to read."""
Label: TypeAlias = Annotated[str, msgspec.Meta(max_length=limits.LABEL_CHARACTERS)]
OF_RANGES = msgspec.Meta(max_length=limits.RANGES_PER_TABLE)
"""Enough for a whole table, or for what its last living owner holds."""
OF_OWNERS = msgspec.Meta(max_length=limits.OWNERS_PER_POOL)
"""Enough for every owner of a table."""
Mark = Literal["renewed", "granted", "recalled"]
RefusalReason = Literal["past", "name_held", "no_pool", "pool_kind"]


class Message(msgspec.Struct, frozen=True, array_like=True, tag=True, omit_defaults=False):
    """The base of all messages: compact arrays on the wire, distinguished by their name."""


class Held(RangeItem, frozen=True, kw_only=True):
    """A range that an owner lists in its request, with the number it holds it under."""

    number: Number


class Leased(RangeItem, frozen=True, kw_only=True):
    """A range that an owner may hold, as the manager's answer lists it."""

    number: Number
    since: Number
    mark: Mark
    handed: Number = 0
    """In a grant with state, the number under which the state was served last; otherwise 0."""
    former: Number = 0
    """The number of a range before it was renumbered while it was held; otherwise 0. The owner goes
    on holding it, under `number`.
    """
    quiet_ns: Number = 0
    """In a grant, how long caches may still hit what an earlier owner let them read (V13)."""


class Copy(RangeItem, frozen=True, kw_only=True):
    """The whole state of a range, as the lease of that number left it, at an owner that does not
    serve it (P13): the one that served it last, or the one that is to serve it next.
    """

    number: Number
    taker: Number = 0
    """The incarnation that has all of it and may be granted the range; 0 while it is being handed
    over.
    """


class HandOff(RangeItem, frozen=True, kw_only=True):
    """A range that its owner is asked to hand over, with its state, while it goes on serving it."""

    number: Number
    """The number under which it is served now."""
    taker: Number
    """The incarnation that is to have it."""
    address: Address
    """The address at which the taker takes state."""
    secret: Nonce = 0
    """The secret of this order, told to the two owners alone: the source shows it to the taker. 0
    from a manager that draws none."""


class Expected(RangeItem, frozen=True, kw_only=True):
    """A range whose owner was ordered to hand its state over to the owner that gets this."""

    number: Number
    """The number under which it is served now."""
    source: Number
    """The incarnation that serves it."""
    secret: Nonce
    """The secret of the order: an owner that knows it was ordered to hand over."""


class Entry(RangeItem, frozen=True, kw_only=True):
    """A range of the lease table as lookups see it: its owner, and since when its state is
    unbroken.
    """

    owner: Number
    """The owner's incarnation; 0 if nobody has the range."""
    number: Number
    since: Number


class OwnerInfo(msgspec.Struct, frozen=True, array_like=True, gc=False, kw_only=True):
    """The name of an owner, its incarnation and its addresses."""

    incarnation: Number
    name: Name
    address: Address
    cache: Address | None = None
    """The address at which the owner takes caches; None if it takes none."""


class Process(msgspec.Struct, frozen=True, array_like=True, gc=False, kw_only=True):
    """A process, distinguished from every other, and the place from where it can be seen (P14)."""

    boot_id: BootId
    pid_namespace: Number
    """The inode number of the namespace that `pid` is a number of."""
    time_namespace: Number
    """The inode number of the namespace whose clock `start_time` is read from."""
    pid: Number
    start_time: Number
    """The start time in clock ticks since the machine started, just as the kernel prints it."""

    @property
    def place(self) -> tuple[str, int, int]:
        """The place in which the same pid and the same start time mean the same process."""
        return self.boot_id, self.pid_namespace, self.time_namespace


# --- owner to manager ---------------------------------------------------------------------------


class Hello(Message, frozen=True, kw_only=True):
    """Ask who leads. Changes nothing."""

    pool: Name
    token: Nonce
    """A number that is drawn for each Hello and repeated by its answer, so that an answer cannot be
    an old one. A Hello that is sent again before an answer can have come has the same number."""
    journal: JournalId = 0
    """The journal whose history the owner has met; 0 for none. A manager of a new journal learns
    from it that there was another one (P22)."""
    name: Text = ""
    """The owner's name, for the manager's log."""
    receipt: ReceiptBytes = b""
    """The receipt of the last answer that its owner took: a leader on an old copy learns from it,
    as its leadership may be one that the owner does not follow.
    """
    rival: Rival | None = None


class Join(Message, frozen=True, kw_only=True):
    """A request for a number: a request that lists nothing, from an owner without a number (P9)."""

    pool: Name
    kind: PoolKind | None
    """The kind that the owner takes the pool to be; if the manager allows it, the pool is created
    so.
    """
    name: Name
    address: Address
    owner_nonce: Nonce
    manager_nonce: Nonce
    sequence: Number
    capacity: float = 1.0
    labels: Annotated[dict[Label, Label], msgspec.Meta(max_length=limits.LABELS_PER_OWNER)] = {}
    process: Process | None = None
    """The owner's process; None if it cannot tell, and then nobody can attest its death."""
    hand_off: Address | None = None
    """The address at which the owner takes the state of ranges from others; None if it cannot."""
    reads_ns: Number = 0
    """The longest volume lease that it will ever give to a cache; 0 if it gives none (V11)."""
    cache: Address | None = None
    """The address at which the owner takes caches; None if it takes none."""
    proves: bool = False
    """Whether it can show the pool's secret at ports; older versions cannot."""


class LeaseRequest(Message, frozen=True, kw_only=True):
    """Everything its owner holds and wants to keep; what is not listed is returned (P5)."""

    pool: Name
    incarnation: Number
    owner_nonce: Nonce
    manager_nonce: Nonce
    sequence: Number
    journal: JournalId
    leadership: Number
    """The highest leadership its owner has seen in that journal's history."""
    held: Annotated[tuple[Held, ...], OF_RANGES]
    leaving: bool = False
    copies: Annotated[tuple[Copy, ...], OF_RANGES] = ()
    load: LoadReport | None = None
    """The load, once in every renewal's time: policies are told it; no lease depends on it."""
    receipt: ReceiptBytes = b""
    """The receipt of the last answer that its owner took."""
    letting_go: Annotated[tuple[Held, ...], OF_RANGES] = ()
    """Ranges, numbered 0, that the application had and has not let go of: a grant of one of them is
    not taken."""
    knows_former: bool = False
    """Whether the owner reads `Leased.former`, so that what it holds may be renumbered (P11)."""
    report: TierReport | None = None
    """A report of what the owner runs beside its leases, for people to see; None if it runs
    nothing.
    """
    proves: bool = False
    rival: Rival | None = None
    waits: bool = False
    """Whether the owner, which is leaving, would rather serve on than return what nobody takes."""


class ShortRequest(Message, frozen=True, kw_only=True):
    """A `LeaseRequest` that lists what `fingerprint` says, and nothing more: no copies, and no
    ranges that are being let go of; and its owner stays. It is sent only to a leader that has told
    the very same fingerprint (`LeaseResponse.fingerprint`). If the table gives its owner something
    different, it changes nothing: the leader answers with an `Introduction`, and the owner asks
    again in full.
    """

    pool: Name
    incarnation: Number
    owner_nonce: Nonce
    manager_nonce: Nonce
    sequence: Number
    journal: JournalId
    leadership: Number
    fingerprint: Fingerprint
    load: LoadReport | None = None
    """The load, as in a `LeaseRequest`; one without ranges says that there were no requests for
    any.
    """
    receipt: ReceiptBytes = b""
    report: TierReport | None = None


class Attested(Message, frozen=True, kw_only=True):
    """An owner that was asked has seen that the process is gone. No owner says so unasked (P14)."""

    pool: Name
    incarnation: Number
    process: Process
    """The dead process, as the question named it."""
    witness: Process
    """The owner that looked, and its place."""
    owner_nonce: Nonce
    """The nonce of the witness."""
    manager_nonce: Nonce


# --- manager to owner ---------------------------------------------------------------------------


class Introduction(Message, frozen=True, kw_only=True):
    """A leader says that it leads, and tells its present nonce, with which to ask again. Changes
    nothing.
    """

    journal: JournalId
    leadership: Number
    manager_nonce: Nonce
    token: Nonce = 0
    """The token of the Hello that it answers; 0 if it answers a request with another nonce."""
    owner_nonce: Nonce = 0
    sequence: Number = 0
    """The number of the request that it answers, with the owner's nonce."""
    realm: Realm = ""
    granted: bool = True
    succeeds: Successions = ()
    """The journals that the leader's goes on from, with the proofs."""
    over: JournalsOver = ()


class LeaseResponse(Message, frozen=True, kw_only=True):
    """Everything its owner may hold, for `term_ns` from when the owner sent the request."""

    incarnation: Number
    owner_nonce: Nonce
    sequence: Number
    manager_nonce: Nonce
    journal: JournalId
    leadership: Number
    term_ns: Number
    renew_ns: Number
    leases: Annotated[tuple[Leased, ...], OF_RANGES]
    copies: Annotated[tuple[Held, ...], OF_RANGES] = ()
    """The copies in the request that still count: all others are to be discarded."""
    hand_offs: Annotated[tuple[HandOff, ...], OF_RANGES] = ()
    """Everything that is to be handed over now: all other hand-overs under way are to
    be given up.
    """
    receipt: ReceiptBytes = b""
    cause: Cause = ""
    expected: Annotated[tuple[Expected, ...], OF_RANGES] = ()
    """The ranges whose state may be on its way to this owner: it takes no other state."""
    same_address: Text = ""
    """The name of another living owner that announces the same address; otherwise empty."""
    reads_ns: Number = 0
    """The journal's value of `Join.reads_ns`; 0 from a manager that would not tell the next owner
    how long caches may hit. The owner gives no longer volume lease (V11, V13).
    """
    fingerprint: Fingerprint = b""
    """The fingerprint of all that it lists, if that is all renewed: the owner may ask with a
    `ShortRequest` for as long as it holds just this. Empty if anything else is said, from a manager
    that knows no such requests, and on a connection that carries none.
    """
    proof: PortProof | None = None


class ShortResponse(Message, frozen=True, kw_only=True):
    """A `LeaseResponse` to a `ShortRequest`: all that the request listed is renewed, and the answer
    lists and orders nothing more.
    """

    incarnation: Number
    owner_nonce: Nonce
    sequence: Number
    manager_nonce: Nonce
    journal: JournalId
    leadership: Number
    term_ns: Number
    renew_ns: Number
    receipt: ReceiptBytes = b""


class Refusal(Message, frozen=True, kw_only=True):
    """The request cannot be answered with leases: the reason, and when to try again."""

    owner_nonce: Nonce
    sequence: Number
    manager_nonce: Nonce
    journal: JournalId
    leadership: Number
    reason: RefusalReason
    detail: Text
    retry_after_ns: Number = 0


class Attest(Message, frozen=True, kw_only=True):
    """A question to an owner beside a process: is that very process gone? It answers only if it is
    (P14).
    """

    pool: Name
    """The suspect's pool, with its incarnation; the witness may be of another pool."""
    incarnation: Number
    process: Process
    manager_nonce: Nonce


class Poke(Message, frozen=True, kw_only=True):
    """A hint to ask now. It says nothing but why; lost, late or doubled, it does no harm."""

    cause: Cause = ""


class Standby(Message, frozen=True, kw_only=True):
    """The manager does not lead. `leader` is the URL of the one that does, if it is known."""

    leader: Text | None


# --- lookup and manager -------------------------------------------------------------------------


class Sync(Message, frozen=True, kw_only=True):
    """Ask what has changed. Also the heartbeat: contact counts from when it was sent (P17)."""

    pool: Name
    sequence: Number
    journal: JournalId
    leadership: Number
    lsn: Number
    nonce: Nonce
    """The lookup's own, drawn when it starts, so that an answer to an earlier life is not taken."""
    receipt: ReceiptBytes = b""
    """The receipt of the last answer or push that the lookup took."""
    reads_columns: bool = False
    """Whether the lookup can be told a whole table as columns."""
    proves: bool = False
    rival: Rival | None = None


class SyncResponse(Message, frozen=True, kw_only=True):
    """The changes after the lookup's LSN, or the whole table; the lookup is then at `lsn`."""

    sequence: Number
    nonce: Nonce
    journal: JournalId
    leadership: Number
    lsn: Number
    kind: PoolKind
    snapshot: bool
    entries: Annotated[tuple[Entry, ...], OF_RANGES]
    owners: Annotated[tuple[OwnerInfo, ...], OF_OWNERS]
    sync_ns: Number
    contact_ns: Number
    receipt: ReceiptBytes = b""
    cause: Cause = ""
    hold_ns: Number = 0
    """How long the manager waits for an owner that is gone."""
    columns: TableColumns | None = None
    """The whole table, in the place of `entries`, for a lookup that has said that it reads it."""
    proof: PortProof | None = None
    realm: Realm = ""


class SyncRefusal(Message, frozen=True, kw_only=True):
    """No such pool exists (yet)."""

    sequence: Number
    nonce: Nonce
    detail: Text


class Changes(Message, frozen=True, kw_only=True):
    """Changes pushed as they commit: for a lookup at `after` or later, which is then at `lsn`."""

    pool: Name
    journal: JournalId
    leadership: Number
    after: Number
    lsn: Number
    entries: Annotated[tuple[Entry, ...], OF_RANGES]
    owners: Annotated[tuple[OwnerInfo, ...], OF_OWNERS]
    receipt: ReceiptBytes = b""
    cause: Cause = ""


FromOwner: TypeAlias = Hello | Join | LeaseRequest | ShortRequest | Attested
FromLookup: TypeAlias = Sync
ToManager: TypeAlias = FromOwner | FromLookup
ToOwner: TypeAlias = (
    Introduction | LeaseResponse | ShortResponse | Refusal | Poke | Standby | Attest
)
ToLookup: TypeAlias = SyncResponse | SyncRefusal | Changes | Standby
FromManager: TypeAlias = ToOwner | ToLookup
AnyMessage: TypeAlias = ToManager | FromManager
