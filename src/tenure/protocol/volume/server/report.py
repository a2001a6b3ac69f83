"""The report of a volume's server to people: how much it holds, and which writes wait."""

from collections.abc import Callable, Sequence

from tenure.base.instants import Instant, in_seconds
from tenure.base.keys import Key
from tenure.protocol.lease.reports import (
    SHOWN_CHARACTERS,
    SHOWN_READERS,
    SHOWN_WRITES,
    VolumeReport,
    WaitingWrite,
)
from tenure.protocol.volume.server.context import VolumeContext
from tenure.protocol.volume.server.writes import Writing


def volume_report(
    now: Instant,
    context: VolumeContext,
    shown_keys: Callable[[Sequence[Key]], str],
    shown_client: Callable[[int], str],
) -> VolumeReport:
    """The server's state in short, with keys and clients named as the caller names them."""
    readers = context.readers

    def waiting(writing: Writing) -> WaitingWrite:
        missing = writing.to_come.missing
        found = (readers.get(number) for number, _ in missing)
        clients = dict.fromkeys(each.client for each in found if each is not None)
        return WaitingWrite(
            keys=shown_keys(writing.keys)[:SHOWN_CHARACTERS],
            seconds=round(in_seconds(now - writing.began_at), 3),
            readers=tuple(
                shown_client(client)[:SHOWN_CHARACTERS] for client in list(clients)[:SHOWN_READERS]
            ),
            missing=len(missing),
        )

    longest = sorted(context.writes.waiting(), key=lambda each: each.began_at)[:SHOWN_WRITES]
    return VolumeReport(
        readers=len(readers),
        leases=readers.leases,
        unacknowledged=sum(len(each.items) for each in readers),
        writes=len(context.writes),
        loads=len(context.loads),
        waiting=tuple(map(waiting, longest)),
    )
