"""Every error that tenure raises, in one tree.

TenureError
├── UsageError              your call is wrong; repeating it will not help
│   ├── KeyTypeError        a key of a type that the pool does not take (also a TypeError)
│   ├── ValueTypeError      a value that could not be handed over (also a TypeError)
│   ├── ConfigurationError  an argument, option or file that cannot be used
│   ├── PoolError           the pool does not exist, or is of another kind
│   ├── SchemaError         a table has no such family, or not with such names or values
│   ├── Unsupported         this store does not do what you ask for
│   ├── ForkedError         it belongs to the parent process, or does not work in a forked child
│   ├── ClosedError         used before it was entered, or after it was left
│   └── NotSimulated        simulated code reached for a socket, a thread or a process; what to use
├── NotOwner                this owner does not hold the key, nothing was begun; says who may
├── LeaseLost               the lease was lost while a guarded body ran: the outcome is unknown
├── Busy                    too many wait for their turn with a key; nothing was begun
├── TurnTooLong             an entity's call took longer than a turn may; it was taken back
├── EntityError             an entity's method raised what cannot be recreated in this process
├── Full                    owned state is at its limit; nothing was stored
├── OutcomeUnknown          a request was sent, and may have been carried out or not
│   ├── WriteUnknown        a store may have the write or not; carries how to repeat it
│   └── StoreFailed         a store may have kept what was changed of a key, or not
├── NewerState              a newer version of the class has kept it; nothing was begun
├── StoreAway               the store of a key cannot be asked; nothing was begun
├── NotEnoughReplicas       too few replicas of a store are there; nothing was begun
├── TooLate                 a store no longer takes writes of that time; nothing was written
├── Overloaded              too many requests to one owner are unanswered; this one was not sent
├── Fenced                  a store has seen a newer lease of the key; nothing was written
├── NoOwner                 no owner took a request in time; nothing was carried out
├── ServiceRefusal          a service refused a request; carries the status, and which limit
├── NoQuorum                too few of the calls that belong together succeeded; carries why
├── Unreachable             a cache's server does not answer; names it
├── LoadFailed              a cache's server could not read the object
├── NoManager               no manager answered; names every one that was tried
│   └── NameHeld            a live owner has the name; carries how long to wait
├── ProtocolError           a message that does not follow the protocol
│   ├── LocalProtocolError  ours: a bug or a misuse on this side
│   └── RemoteProtocolError the peer's: malformed, too large, another version
├── StoreError              a store cannot be used; nothing was touched
│   ├── StoreInUse          another process, or another handle, has it open
│   ├── StoreDamaged        what it holds cannot be read back
│   ├── StoreTooNew         written by a newer tenure
│   └── StoreUnwritable     no permission, read-only, or no space
└── JournalError            the journal cannot be used; nothing was touched
    ├── JournalDamaged      what it holds cannot be read back
    ├── JournalTooNew       written by a newer tenure
    ├── JournalUnwritable   no permission, read-only, or no space
    └── JournalWentBack     it knows less than managers and owners have seen
"""

import re
from functools import reduce
from reprlib import Repr
from typing import Any

import msgspec


class TenureError(Exception):
    """The root of all errors of tenure."""


class UsageError(TenureError):
    """The call is wrong; repeating it will not help."""


class KeyTypeError(UsageError, TypeError):
    """A key of a type that the pool does not take."""


class ValueTypeError(UsageError, TypeError):
    """A value that could not be handed over."""


class ConfigurationError(UsageError, ValueError):
    """An argument, option or file that cannot be used."""


class PoolError(UsageError):
    """The pool does not exist, or is of another kind."""


class SchemaError(UsageError):
    """A table has no such family, or takes no such names or values there."""


class Unsupported(UsageError):
    """This store does not do what was asked for; another kind of store does."""


class ForkedError(UsageError):
    """This belongs to the parent process, or needs what a forked child does not have."""


class ClosedError(UsageError):
    """Used before it was entered, or after it was left."""


class NotSimulated(UsageError):
    """Code in a simulated process reached for the world outside, which does not exist there."""


class NotOwner(TenureError):
    """This owner does not hold the key, and nothing was begun: you may ask another owner.

    `address` is where the key's owner is believed to be; None if that is not known.
    """

    def __init__(self, message: str, *, address: str | None = None) -> None:
        super().__init__(message)
        self.address = address


class LeaseLost(TenureError):
    """The lease was lost while a guarded body ran: another owner may have acted beside it.

    The body may have done its work or not, and the work may count or not. Doing it again elsewhere
    may do it twice, so a service never answers this as it answers NotOwner.
    """


class Busy(TenureError):
    """Too many callers wait for their turn with a key, or this one has waited too long; nothing was
    begun.
    """

    def __init__(self, message: str, *, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """The seconds after which it is worth asking again."""


class TurnTooLong(TenureError):
    """An entity's call took longer than a turn may; its uncommitted changes were undone."""


class EntityError(TenureError):
    """A call of an entity raised an error that its caller cannot be given: in another process one
    that this process cannot recreate, or one that would mean something else here.
    """


class Full(TenureError):
    """Owned state is at its limit; nothing was stored."""


class OutcomeUnknown(TenureError):
    """A request was sent, and may or may not have been carried out; it must not simply be
    repeated.
    """


class WriteUnknown(OutcomeUnknown):
    """A store may or may not have the write. `await error.write.repeat()` writes exactly the same
    again.
    """

    def __init__(self, message: str, write: object = None) -> None:
        super().__init__(message)
        self.write = write
        """The write, with its `repeat()`."""


class NotEnoughReplicas(TenureError):
    """Fewer replicas of a store are up than the call needs; it was not begun."""


class TooLate(TenureError):
    """A store no longer takes writes of that time, because everything older is settled."""

    def __init__(self, message: str, *, horizon: int) -> None:
        super().__init__(message)
        self.horizon = horizon
        """The last time, in microseconds, that is refused."""


class StoreFailed(OutcomeUnknown):
    """A store did not confirm that it has kept a change of a key: it may or may not have."""


class StoreAway(TenureError):
    """The store of a key cannot be asked, so nothing was begun; the call may be repeated."""


class NewerState(TenureError):
    """A newer version of an entity's class has kept its state, which this process cannot read, so
    its call was not begun; a process with the newer version can carry it out.
    """


class Overloaded(TenureError):
    """Too many requests to one owner are unanswered; this one was not sent."""


class Fenced(TenureError):
    """A store has seen a newer lease of the key; nothing was written."""


class NoOwner(TenureError):
    """No owner of the key took the request in time; nothing was carried out."""


class ServiceRefusal(TenureError):
    """A service of `tenure serve` refused a request."""

    def __init__(
        self,
        status: int,
        error: str,
        detail: str,
        limit: str = "",
        most: int = 0,
        version: str = "",
        gone_at: float = 0.0,
    ) -> None:
        super().__init__(status, error, detail, limit, most, version, gone_at)
        self.detail = detail
        self.status = status
        """The status of the refusal in HTTP."""
        self.error = error
        """The error in a word, for programs."""
        self.limit = limit
        """The limit that the request was beyond, if any."""
        self.most = most
        """The value of that limit."""
        self.version = version
        """The version that is there, if another was expected."""
        self.gone_at = gone_at
        """When the requested thing ceased to exist, in seconds since 1970; 0 if it did not."""

    def __str__(self) -> str:
        return self.detail


class NoQuorum(TenureError):
    """Too few of the calls in a quorum succeeded; others may have been carried out."""

    def __init__(self, message: str, causes: tuple[BaseException, ...]) -> None:
        super().__init__(message)
        self.causes = causes
        """The errors of the calls that failed."""


class Unreachable(TenureError):
    """A cache's server does not answer: nothing was read, and nothing was sent to be written."""


class LoadFailed(TenureError):
    """A cache's server could not read the object: what its `load` raised."""


class NoManager(TenureError):
    """No manager answered in time."""


class NameHeld(NoManager):
    """A live owner has the name."""

    def __init__(self, message: str, *, wait_seconds: float) -> None:
        super().__init__(message)
        self.wait_seconds = wait_seconds


class ProtocolError(TenureError):
    """A message that does not follow the protocol."""


class LocalProtocolError(ProtocolError):
    """A message of this side that does not follow the protocol."""


class RemoteProtocolError(ProtocolError):
    """A message of the peer that does not follow the protocol."""


class StoreError(TenureError):
    """A store cannot be used; nothing was touched."""


class StoreInUse(StoreError):
    """Another process, or another handle in this one, has the store open."""


class StoreDamaged(StoreError):
    """The store holds data that cannot be read back."""


class StoreTooNew(StoreError):
    """The store was written by a newer tenure."""


class StoreUnwritable(StoreError):
    """The store cannot be written: no permission, read-only, or no space."""


class JournalError(TenureError):
    """The journal cannot be used; nothing was touched."""


class JournalDamaged(JournalError):
    """The journal holds data that cannot be read back."""


class JournalTooNew(JournalError):
    """The journal was written by a newer tenure."""


class JournalUnwritable(JournalError):
    """The journal cannot be written: no permission, read-only, or no space."""


class JournalWentBack(JournalError):
    """The journal knows less than managers and owners have seen of it."""


MALFORMED = (ValueError, RecursionError)
"""The errors of decoding, whatever the bytes: the errors of msgspec, of bytes that are not UTF-8,
and of a number too long are ValueErrors; values nested too deep for the stack are a RecursionError.
"""

READ_BYTES = 64 << 10
"""The longest body in which the value at fault is looked up: to read a long one without its type,
for an error, would cost what the bounds of the type are there to save.
"""
_PLACE = re.compile(r" - at `\$((?:\.\w+|\[\d+\])*)`\Z")
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")
_SHORT = Repr()
_SHORT.maxother = _SHORT.maxstring = 80


def said_of(error: Exception, body: bytes) -> str:
    """What the error says, and the value that is at fault if it can be told."""
    said = str(error)
    if not isinstance(error, msgspec.ValidationError) or len(body) > READ_BYTES:
        return said
    place = _PLACE.search(said)
    if place is None and " - at `" in said:
        return said
    steps = _STEP.findall(place.group(1)) if place else []
    try:
        value: Any = reduce(_inside, steps, msgspec.json.decode(body))
    except (*MALFORMED, LookupError, TypeError):
        return said
    return f"{said}; it is {_SHORT.repr(value)}"


def _inside(value: Any, step: tuple[str, str]) -> Any:  # noqa: ANN401  # whatever JSON has
    name, number = step
    return value[name] if name else value[int(number)]
