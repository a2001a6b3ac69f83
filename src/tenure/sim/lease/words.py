"""Messages, records and beliefs in a few words: for stories that people read."""

from collections import Counter
from typing import Any

from tenure.base.instants import in_seconds
from tenure.protocol.lease.messages import (
    Attest,
    Attested,
    Changes,
    Copy,
    Entry,
    HandOff,
    Hello,
    Introduction,
    Join,
    LeaseRequest,
    LeaseResponse,
    Poke,
    Refusal,
    ShortRequest,
    ShortResponse,
    Standby,
    Sync,
    SyncRefusal,
    SyncResponse,
)
from tenure.protocol.lease.owner.events import Holdings
from tenure.protocol.lease.records import (
    Changed,
    Joined,
    Left,
    PoolCreated,
    PromiseLowered,
    TookOver,
    WaitedOut,
)

SHOWN = 3
"""How many ranges are named one by one. Of more, only the number is shown."""
LONGEST = 160


def in_words(thing: Any) -> str:
    """The meaning of `thing` in words, or its own text if nothing better is known."""
    match thing:
        case Hello() | Poke() | WaitedOut():
            return ""
        case Join():
            return f"#{thing.sequence} under the name {thing.name}"
        case LeaseRequest():
            copies = f", copies of {_ranges(thing.copies)}" if thing.copies else ""
            lists = f"{_ranges(thing.held)}{copies}{', leaving' if thing.leaving else ''}"
            return f"#{thing.sequence} of {thing.incarnation} lists {lists}"
        case ShortRequest():
            return f"#{thing.sequence} of {thing.incarnation} lists what it is known to hold"
        case ShortResponse():
            return f"to #{thing.sequence}: all renewed, for {in_seconds(thing.term_ns):g} s"
        case Introduction():
            return f"leads as {thing.leadership}"
        case LeaseResponse():
            term = in_seconds(thing.term_ns)
            told = f"{_marks(thing)}{_moves(thing)}"
            return f"to #{thing.sequence}: {told}, for {term:g} s from when it asked"
        case Refusal():
            return f"of #{thing.sequence}: {thing.reason}"
        case Attest():
            return f"is {thing.incarnation} gone, process {thing.process.pid}?"
        case Attested():
            return f"{thing.incarnation} is gone, process {thing.process.pid}"
        case Standby(leader=leader):
            return f"{leader} leads" if leader else "knows no leader"
        case HandOff():
            return f"{_ranges((thing,))} to {thing.taker}"
        case Copy():
            return f"{_ranges((thing,))}, {f'with {thing.taker}' if thing.taker else 'on its way'}"
        case Holdings():
            return f"{_ranges(thing.leases)} as incarnation {thing.incarnation}"
        case _:
            text = _of_lookups(thing) or _of_records(thing) or str(thing)
            return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def _of_lookups(thing: Any) -> str:
    match thing:
        case Sync():
            return f"#{thing.sequence} from LSN {thing.lsn}"
        case SyncResponse():
            what = "the whole table" if thing.snapshot else _count(len(thing.entries), "change")
            return f"to #{thing.sequence}: {what}, up to LSN {thing.lsn}"
        case SyncRefusal():
            return f"to #{thing.sequence}: no such pool"
        case Changes():
            return f"LSN {thing.after} to {thing.lsn}, {_count(len(thing.entries), 'change')}"
        case _:
            return ""


def _of_records(thing: Any) -> str:
    match thing:
        case TookOver():
            return f"{thing.manager} leads as {thing.leadership}"
        case PromiseLowered(promise_ns=promise_ns):
            return f"the longest promise is {in_seconds(promise_ns):g} s"
        case PoolCreated(pool=pool):
            return f"the pool {pool} exists"
        case Joined():
            return f"{thing.name} is incarnation {thing.incarnation}"
        case Left():
            freed = f", which frees {_entries(thing.entries)}" if thing.entries else ""
            return f"incarnation {thing.incarnation} is gone{freed}"
        case Changed(entries=entries, handed=handed):
            return _entries(entries) + (f", with the state of {handed}" if handed else "")
        case _:
            return ""


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _ranges(held: Any) -> str:
    if not held:
        return "nothing"
    if len(held) > SHOWN:
        return _count(len(held), "range")
    return ", ".join(f"{item.range} under {item.number}" for item in held)


def _marks(response: LeaseResponse) -> str:
    marks = Counter(lease.mark for lease in response.leases)
    if len(response.leases) == 1:
        lease = response.leases[0]
        return f"{lease.range} {lease.mark} under {lease.number}"
    told = (f"{marks[mark]} {mark}" for mark in ("renewed", "granted", "recalled") if marks[mark])
    return ", ".join(told) or "nothing"


def _moves(response: LeaseResponse) -> str:
    copies = f", copies count of {_ranges(response.copies)}" if response.copies else ""
    orders = response.hand_offs
    return copies + (f", to hand over: {_ranges(orders)}" if orders else "")


def _entries(entries: tuple[Entry, ...]) -> str:
    if len(entries) > SHOWN:
        return _count(len(entries), "entry").replace("entrys", "entries")
    return ", ".join(
        f"{entry.range} to {entry.owner or 'nobody'} under {entry.number}" for entry in entries
    )
