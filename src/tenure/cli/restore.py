"""`tenure restore`: go on from an old copy of a journal."""

import asyncio
import math
import re
from collections.abc import Iterable
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from tenure.base.instants import in_seconds
from tenure.base.names import shown, wrong_with_name
from tenure.cli.output import counted, say, show
from tenure.cli.waiting import WaitingLine
from tenure.errors import ConfigurationError
from tenure.journals import open_copy
from tenure.journals.contract import Beginning, Restorable
from tenure.manager.restore import RestoredCopy, read_copy
from tenure.manager.restore import restore as carry_out
from tenure.protocol.lease.records import AnyRecord, State
from tenure.protocol.lease.restoration import ABOVE_MOST, Vigil
from tenure.protocol.topology.history import LostCluster
from tenure.runtime.clock import boot_clock
from tenure.wire.lease_records import LEASE_RECORDS

LOST_CLUSTER = re.compile("(?P<name>.+)=(?P<id>[0-9a-f]{16})@(?P<version>[0-9]{1,16})")


def restore(
    *,
    journal: str,
    above: Annotated[int, Parameter(validator=Number(gte=0, lte=ABOVE_MOST))] = 0,
    cluster: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    dry_run: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Make a new journal from an old copy, once no manager is using the copy.

    The copy itself becomes the new journal: every key is lost once, and lookups are told so.

    Parameters
    ----------
    journal
        Where the copy is: sqlite:PATH or etcd:URL,URL,...
    above
        A lease number beyond which the numbers go on, if the lost journal has no copy, and this is
        the one with which the managers began anew: the highest number that anything is fenced with.
    cluster
        A cluster of that lost journal, as NAME=ID@VERSION: the managers tell its nodes when they
        refuse them. Its ring is read back from the nodes.
    dry_run
        Change nothing; show what is in the copy, and what it would become.
    """
    asyncio.run(_restore(journal, above, _clusters(cluster), dry_run=dry_run))


def _clusters(said: Iterable[str]) -> dict[str, LostCluster]:
    found = {}
    for each in said:
        parts = LOST_CLUSTER.fullmatch(each)
        if parts is None or wrong_with_name(parts["name"]):
            raise ConfigurationError(
                f"{shown(each)} is not NAME=ID@VERSION, as managers tell it a node of that cluster"
            )
        found[parts["name"]] = LostCluster(int(parts["id"], 16), int(parts["version"]))
    return found


async def _restore(url: str, above: int, lost: dict[str, LostCluster], *, dry_run: bool) -> None:
    journal = await asyncio.to_thread(open_copy, url, LEASE_RECORDS)
    try:
        copy = await read_copy(journal, above, lost)
        _show_copy(url, copy)
        if dry_run:
            _show_plan(copy)
            return
        begun = await _carried_out(journal, copy)
    finally:
        await journal.close()
    say(
        f"restored: it is journal {begun.journal:016x} now, from leadership {begun.seat.leadership}"
    )
    say("start its managers, without --first-start: the first to lead waits before it grants")


async def _carried_out(
    journal: Restorable[AnyRecord, State], copy: RestoredCopy
) -> Beginning[State]:
    left = math.inf

    def tell(seconds: float) -> None:
        nonlocal left
        if left == math.inf:
            say(f"watching for {math.ceil(seconds)} s whether a manager has it")
        left = seconds

    def text() -> str:
        return f"watching the journal: {math.ceil(left)} s left" if left < math.inf else "reading"

    with WaitingLine(text):
        return await carry_out(journal, copy, tell)


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
        owners = counted(len(table.members), "owner")
        leases = counted(sum(len(table.held_by(owner)) for owner in table.members), "lease")
        rows.append((f"pool {name}", f"{table.kind}, {owners}, {leases}"))
    for name, cluster in sorted(copy.history.clusters.states.items()):
        topology = cluster.topology
        kept = f"version {topology.version}, {counted(len(topology.nodes), 'node')}"
        rows.append((f"cluster {name}", f"{kept}, {counted(len(topology.tables), 'table')}"))
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
