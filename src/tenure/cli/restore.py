"""`tenure restore`: go on from an old copy of a journal."""

import asyncio
import math
from typing import Annotated

from cyclopts import Parameter

from tenure.base.instants import in_seconds
from tenure.cli.output import say, show
from tenure.journals import open_copy
from tenure.journals.contract import Beginning
from tenure.manager.restore import RestoredCopy, read_copy
from tenure.manager.restore import restore as carry_out
from tenure.protocol.lease.records import State
from tenure.protocol.lease.restoration import Vigil
from tenure.runtime.clock import boot_clock
from tenure.wire.lease_records import LEASE_RECORDS

PROGRESS_SECONDS = 2
"""How often a line tells how long is still to watch."""


def restore(*, journal: str, dry_run: Annotated[bool, Parameter(negative="")] = False) -> None:
    """Go on from an old copy of a journal, once no manager has it.

    The copy becomes another journal: every key is lost once, and lookups are told so.

    Parameters
    ----------
    journal
        Where the copy lies: sqlite:PATH or etcd:URL,URL,...
    dry_run
        Change nothing; say what is in the copy, and what would become of it.
    """
    asyncio.run(_restore(journal, dry_run=dry_run))


async def _restore(url: str, *, dry_run: bool) -> None:
    journal = await asyncio.to_thread(open_copy, url, LEASE_RECORDS)
    try:
        copy = await read_copy(journal)
        _show_copy(url, copy)
        if dry_run:
            _show_plan(copy)
            return
        begun = await carry_out(journal, copy, Progress().tell)
    finally:
        await journal.close()
    say(
        f"restored: it is journal {begun.journal:016x} now, from leadership {begun.seat.leadership}"
    )
    say("start its managers, without --first-start: the first to lead waits before it grants")


def _show_copy(url: str, copy: RestoredCopy) -> None:
    seat = copy.seat
    rows: list[tuple[str, object]] = [
        ("journal", url),
        ("identity", f"{copy.journal:016x}"),
        ("LSN", copy.lsn),
        ("leadership", f"{seat.leadership} of {seat.manager or 'nobody'}"),
    ]
    for name, table in sorted(copy.history.tables.items()):
        if table.is_deleted:
            continue
        leases = sum(len(table.held_by(owner)) for owner in table.members)
        owners = len(table.members)
        rows.append((f"pool {name}", f"{table.kind}, {owners} owners, {leases} leases"))
    for name, cluster in sorted(copy.history.clusters.states.items()):
        topology = cluster.topology
        kept = f"version {topology.version}, {len(topology.nodes)} nodes"
        rows.append((f"cluster {name}", f"{kept}, {len(topology.tables)} tables"))
    show(("what", "in the copy"), rows, empty="")


def _show_plan(copy: RestoredCopy) -> None:
    begun: Beginning[State] = copy.beginning()
    now = boot_clock()
    watch = math.ceil(in_seconds(Vigil(now, copy.seat).over_at - now))
    rows: list[tuple[str, object]] = [
        ("identity", "a new one, drawn then"),
        ("LSN", f"{copy.lsn}, in a snapshot"),
        ("leadership", f"{begun.seat.leadership} of nobody"),
    ]
    rows += [
        (f"pool {pool.pool}", f"{pool.kind}, 0 owners, 0 leases, numbers from {pool.next_number}")
        for pool in begun.state.pools
    ]
    rows += [
        (f"cluster {cluster.topology.cluster}", "its topology is read back from its nodes")
        for cluster in begun.state.clusters
    ]
    show(("what", "restored"), rows, empty="")
    say(f"nothing was changed; without --dry-run it is watched for {watch} s, then restored")


class Progress:
    """A line every few seconds while the copy is watched."""

    def __init__(self) -> None:
        self._told_at = math.inf

    def tell(self, seconds: float) -> None:
        """So many seconds are still to watch."""
        if self._told_at == math.inf:
            say(f"watching for {math.ceil(seconds)} s whether a manager has it")
        elif seconds <= self._told_at - PROGRESS_SECONDS:
            say(f"  {math.ceil(seconds)} s left")
        else:
            return
        self._told_at = seconds
