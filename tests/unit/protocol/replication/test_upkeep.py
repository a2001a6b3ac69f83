"""Replicas become equal by their own upkeep, and deleted data goes for good."""

from collections.abc import Callable
from itertools import islice
from random import Random

import msgspec
import pytest

from tenure.base.instants import SECOND_NS, Instant
from tenure.base.ranges import WHOLE
from tenure.columns import range_sums
from tenure.columns.node_replica import NodeReplica
from tenure.protocol.replication.messages import (
    NodeBody,
    NodeMessage,
    NotWritten,
    ReadRows,
    RowsFound,
    WriteRow,
)
from tenure.protocol.replication.node_events import Convicted, RunStep, TopologyLearned
from tenure.protocol.replication.operations import (
    ApplyRow,
    ListPlaces,
    MergeState,
    PromiseHorizon,
    ReadState,
    ReadSums,
    RowsListed,
    SealHorizon,
    StateRead,
)
from tenure.protocol.replication.row import pages
from tenure.protocol.replication.row.admission import Attempt, Late
from tenure.protocol.replication.row.cells import cell_of
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.layout import position
from tenure.protocol.replication.row.limits import NAME_BYTES
from tenure.protocol.replication.row.pages import Slice
from tenure.protocol.replication.row.states import RowState, merged
from tenure.protocol.replication.row.sums import inner_place, place_among_sums
from tenure.protocol.replication.row.versions import Version
from tenure.protocol.replication.upkeep.comparing import unlike
from tenure.protocol.replication.upkeep.upkeep import Upkeep
from tenure.protocol.topology.records import ReplicaRange
from tests.unit.protocol.replication.stage_of_nodes import EPOCH_US, NodeStage
from tests.unit.protocol.replication.test_schedules import write

ROUND_SECONDS = 61
LAG_SECONDS = 600


def put(
    stage: NodeStage, nodes: tuple[int, ...], key: bytes, time: int, value: bytes | None
) -> None:
    """Have these nodes alone hear of a write, of which nobody keeps a hint."""
    edit = Edit("names", None, b"a", value)
    version = Version(0, EPOCH_US + time)
    asked = WriteRow(request=1, table="plain", key=key, edits=(edit,), attempt=Attempt(version))
    context = stage.nodes[nodes[0]].machine.context
    config, context.config = context.config, msgspec.structs.replace(context.config, most_hints=0)
    stage.ask(nodes[0], asked)
    stage.deliver(*nodes)
    stage.messages.clear()
    stage.wait(6)
    context.config = config


def entries(store: NodeReplica, key: bytes) -> tuple[object, ...]:
    result, _ = store.run(ReadState(table="plain", key=key))
    assert isinstance(result, StateRead)
    return result.state.entries


def rounds(stage: NodeStage, count: int = 1) -> list[NodeMessage]:
    """Let this many rounds pass; return all that was said."""
    before = len(stage.said)
    for _ in range(count * 12):
        stage.wait(ROUND_SECONDS / 12)
        stage.deliver()
    return stage.said[before:]


def bodies(said: list[NodeMessage], kind: type) -> list[NodeMessage]:
    return [each for each in said if isinstance(each.body, kind)]


def test_equal_replicas_say_little() -> None:
    stage = NodeStage()
    for number in range(50):
        put(stage, (1, 2, 3), b"%d" % number, number + 1, b"x")
    rounds(stage)
    said = rounds(stage)
    assert bodies(said, ReadSums)
    assert not bodies(said, MergeState)
    assert sum(len(str(each.body)) for each in said) < 10_000


def test_what_one_replica_missed_it_gets() -> None:
    stage = NodeStage()
    put(stage, (1, 2, 3), b"old", 1, b"x")
    put(stage, (1, 2), b"k", 2, b"x")
    put(stage, (2, 3), b"l", 3, b"x")
    put(stage, (3, 1), b"m", 4, None)
    rounds(stage, 2)
    for key in (b"old", b"k", b"l", b"m"):
        found = {entries(node.store, key) for node in stage.nodes.values()}
        assert len(found) == 1, key
        assert all(found)
    assert not bodies(rounds(stage), MergeState)


def of_one_place(stage: NodeStage, count: int, wanted: Callable[[bytes], int]) -> list[bytes]:
    """Keys that whoever writes has chosen so that their rows are all in one place."""
    kind = stage.nodes[1].store.tables["plain"].kind
    keys = (b"%d" % number for number in range(10**9))
    chosen = (each for each in keys if wanted(position(each, kind)) == 5)
    return [*islice(chosen, count)]


@pytest.mark.parametrize(("wanted", "count"), [(place_among_sums, 24), (inner_place, 5)])
def test_however_many_rows_are_in_one_place_some_are_listed_at_a_time(
    monkeypatch: pytest.MonkeyPatch, wanted: Callable[[bytes], int], count: int
) -> None:
    monkeypatch.setattr(pages, "LISTED_ROWS", 2)
    monkeypatch.setattr(range_sums, "SUMMED_ROWS", 10)
    stage = NodeStage()
    keys = of_one_place(stage, count, wanted)
    for number, key in enumerate(keys):
        at = Attempt(Version(0, EPOCH_US + number))
        edits = (Edit("names", None, b"a", b"x"),)
        for node in (1, 2) if number % 3 else (1 + number % 2,):
            step = ApplyRow(table="plain", key=key, edits=edits, attempt=at)
            stage.nodes[node].store.run(step)
    said = rounds(stage, 8)
    for key in keys:
        assert all(entries(node.store, key) for node in stage.nodes.values()), key
    lists = [each.body.rows for each in said if isinstance(each.body, RowsListed)]
    assert lists
    assert max(map(len, lists)) <= 2
    assert not bodies(rounds(stage), MergeState)


def listed_rows(*numbers: int, is_all: bool = True) -> RowsListed:
    return RowsListed(
        rows=tuple((at, b"d") for at in ORDERED if ORDERED[at] in numbers), is_all=is_all
    )


ORDERED = {
    at: number
    for number, at in enumerate(sorted((b"%d" % each for each in range(6)), key=inner_place))
}


def test_lists_are_compared_as_far_as_both_go() -> None:
    at = [*ORDERED]
    begin = (0, b"")
    found, end = unlike(listed_rows(0, 1, is_all=False), listed_rows(0, 2, is_all=False), begin)
    assert found == [at[1]]
    assert end == (inner_place(at[1]), at[1])
    found, end = unlike(listed_rows(3), listed_rows(0, 1, 2, 3, 5), end)
    assert found == [at[2], at[5]], "of what an older node tells again nothing counts"
    assert end is None
    assert unlike(listed_rows(), listed_rows(is_all=False), begin) == ([], None)
    passed = (inner_place(at[5]), at[5])
    assert unlike(listed_rows(), listed_rows(1, is_all=False), passed) == ([], None), "no circle"


def test_a_disk_that_cannot_be_read_for_a_while_does_not_end_repair_for_ever() -> None:
    stage = NodeStage()
    for number in range(40):
        attempt = Attempt(Version(0, EPOCH_US + number))
        step = ApplyRow(
            table="plain",
            key=b"%d" % number,
            edits=(Edit("names", None, b"a", b"x"),),
            attempt=attempt,
        )
        stage.nodes[1].store.run(step)
    stage.nodes[1].refuses = ListPlaces
    rounds(stage, 2)
    assert stage.nodes[1].refused > 1
    stage.nodes[1].refuses = None
    rounds(stage, 3)
    assert all(entries(stage.nodes[3].store, b"%d" % number) for number in range(40))


def test_a_round_that_takes_long_is_not_begun_again() -> None:
    """Building the sums of a large store takes minutes."""
    stage = NodeStage()
    context = stage.nodes[1].machine.context
    upkeep = Upkeep(context, Random(1))
    upkeep.start(stage.now)
    begun: list[object] = []
    for _ in range(3):
        stage.now = Instant(stage.now + ROUND_SECONDS * SECOND_NS)
        upkeep.advance(stage.now)
        begun += [each.step for each in context.actions if isinstance(each, RunStep)]
        context.actions.clear()
    assert len(begun) == 1


def test_a_row_marker_is_repaired_too() -> None:
    stage = NodeStage()
    put(stage, (1, 2, 3), b"k", 1, b"x")
    asked = WriteRow(
        request=1,
        table="plain",
        key=b"k",
        edits=(Edit(),),
        attempt=Attempt(Version(0, EPOCH_US + 5)),
    )
    stage.ask(1, asked)
    stage.deliver(1, 2)
    stage.messages.clear()
    rounds(stage, 2)
    states = [
        node.store.run(ReadState(table="plain", key=b"k"))[0] for node in stage.nodes.values()
    ]
    markers = {each.state.marker for each in states if isinstance(each, StateRead)}
    assert markers == {Version(0, EPOCH_US + 5).packed()}


def test_a_tombstone_goes_when_all_have_it_and_it_is_old() -> None:
    stage = NodeStage()
    put(stage, (1, 2, 3), b"k", 1, b"x")
    put(stage, (1, 2), b"k", 2, None)
    rounds(stage)
    assert all(entries(node.store, b"k") for node in stage.nodes.values())
    rounds(stage, 12)
    assert not any(entries(node.store, b"k") for node in stage.nodes.values())
    late = WriteRow(
        request=9,
        table="plain",
        key=b"k",
        edits=(Edit("names", None, b"a", b"late"),),
        attempt=Attempt(Version(0, EPOCH_US + 2)),
    )
    stage.ask(2, late)
    stage.deliver()
    answer = stage.answers[-1]
    assert isinstance(answer, NotWritten)
    assert isinstance(answer.refused, Late)


def test_a_replica_that_is_down_holds_a_seal_back_and_is_named() -> None:
    stage = NodeStage()
    put(stage, (1, 2, 3), b"k", 1, None)
    for node in (1, 2):
        stage.nodes[node].post(Convicted((3,)))
    said = rounds(stage, 13)
    assert not bodies(said, SealHorizon)
    assert all(entries(node.store, b"k") for node in stage.nodes.values())
    [report] = stage.nodes[1].machine.upkeep.tended.values()
    assert report.held_back_by == (3,)
    assert report.compared_at is not None


@pytest.mark.parametrize("silent", [2, 3])
def test_a_replica_that_is_silent_holds_a_seal_back(silent: int) -> None:
    stage = NodeStage()
    put(stage, (1, 2, 3), b"k", 1, None)
    for _ in range(13 * 12):
        stage.wait(ROUND_SECONDS / 12)
        while stage.messages:
            stage.lose(silent)
            stage.deliver()
    assert all(entries(node.store, b"k") for node in stage.nodes.values())
    rounds(stage, 3)
    assert not any(entries(node.store, b"k") for node in stage.nodes.values())


def tell(stage: NodeStage, sender: int, receiver: int, body: NodeBody) -> None:
    """Have a node say something to another."""
    stage.nodes[sender].machine.context.tell(receiver, body)
    stage.nodes[sender].advance()
    stage.deliver()


def test_from_its_promise_on_a_replica_takes_no_write_of_that_time() -> None:
    stage = NodeStage()
    put(stage, (1, 2, 3), b"k", 5, b"x")
    for node in (1, 2, 3):
        tell(stage, 1, node, PromiseHorizon(ticket=1, range=WHOLE, time=EPOCH_US + 3))
    late = write(1, b"late", 3)
    stage.ask(2, late)
    stage.deliver()
    assert stage.answers[-1] == NotWritten(request=1, refused=Late(EPOCH_US + 3))


def test_a_mend_from_before_a_seal_is_ignored() -> None:
    stage = NodeStage()
    put(stage, (1, 2, 3), b"k", 1, b"x")
    before, _ = stage.nodes[1].store.run(ReadState(table="plain", key=b"k"))
    assert isinstance(before, StateRead)
    put(stage, (1, 2, 3), b"k", 2, None)
    rounds(stage, 12)
    assert not any(entries(node.store, b"k") for node in stage.nodes.values())
    for node in (2, 3):
        tell(stage, 1, node, MergeState(ticket=1, table="plain", key=b"k", state=before.state))
    assert not any(entries(node.store, b"k") for node in stage.nodes.values())


def test_what_an_adoption_settled_counts_where_a_seal_was_not_heard_of() -> None:
    sealed = RowState(
        entries=(("names", b"\2a", cell(5, 10)),), adopted=7, attempt=2, sealed=20, is_whole=True
    )
    adopted = RowState(
        entries=(("names", b"\2a", cell(5, 10)),), adopted=8, attempt=1, sealed=0, is_whole=True
    )
    assert merged([sealed, adopted]).entries == adopted.entries


def cell(number: int, time: int) -> bytes:
    return cell_of(Version(number, time).packed(), b"x")


def hinted(stage: NodeStage, node: int) -> dict[int, int]:
    """How many hints a node has for others, as managers are told it."""
    return {each.node: each.count for each in stage.nodes[node].machine.report(stage.now).hints}


def hints_on_disk(stage: NodeStage, node: int) -> int:
    return len(list(stage.nodes[node].engine.cursor("hints").walk(b"", None)))


def test_a_hint_survives_its_coordinator_and_is_handed_over_once() -> None:
    stage = NodeStage()
    stage.ask(1, write(1, b"x", 5))
    stage.deliver(1, 2)
    stage.messages.clear()
    stage.wait(6)
    assert hints_on_disk(stage, 1) == 1
    stage.nodes[1].sync()
    stage.nodes[1].engine.crash()
    stage.nodes[1].start(stage.topology)
    stage.nodes[1].advance()
    assert hinted(stage, 1) == {3: 1}
    stage.wait(11)
    stage.deliver()
    assert entries(stage.nodes[3].store, b"k") == entries(stage.nodes[2].store, b"k")
    assert hints_on_disk(stage, 1) == 0
    assert hinted(stage, 1) == {}


def test_a_hint_survives_the_replica_that_it_is_for() -> None:
    stage = NodeStage()
    stage.ask(1, write(1, b"x", 5))
    stage.deliver(1, 2)
    stage.messages.clear()
    stage.wait(6)
    for _ in range(3):
        stage.wait(11)
        stage.lose(3)
        stage.deliver(1, 2)
    stage.nodes[3].start(stage.topology)
    stage.wait(11)
    stage.deliver()
    assert entries(stage.nodes[3].store, b"k")
    assert hints_on_disk(stage, 1) == 0


def test_a_hint_for_a_node_that_is_no_longer_a_replica_of_the_row_is_dropped() -> None:
    """The node answers nothing about the row, so the hint would be handed over for ever."""
    stage = NodeStage(4)
    stage.ask(1, write(1, b"x", 5))
    stage.deliver(1, 2)
    stage.messages.clear()
    stage.wait(6)
    assert hints_on_disk(stage, 1) == 1
    ranges = (ReplicaRange(b"", (1, 2, 4)),)
    moved = msgspec.structs.replace(stage.topology, version=2, ranges=ranges)
    for node in stage.nodes.values():
        node.post(TopologyLearned(moved))
    stage.wait(11)
    stage.deliver()
    assert hints_on_disk(stage, 1) == 0
    assert hinted(stage, 1) == {}


def test_hints_are_bounded_and_repair_brings_what_they_do_not() -> None:
    stage = NodeStage()
    config = stage.nodes[1].machine.context.config
    stage.nodes[1].machine.context.config = msgspec.structs.replace(config, most_hint_bytes=150)
    for number in range(3):
        edit = Edit("names", None, b"a", b"x")
        version = Version(0, EPOCH_US + number)
        asked = WriteRow(
            request=number,
            table="plain",
            key=b"%d" % number,
            edits=(edit,),
            attempt=Attempt(version),
        )
        stage.ask(1, asked)
        stage.deliver(1, 2)
        stage.messages.clear()
    stage.wait(6)
    assert 0 < hints_on_disk(stage, 1) < 3
    assert stage.nodes[1].machine.report(stage.now).hints_dropped
    rounds(stage, 2)
    assert all(entries(stage.nodes[3].store, b"%d" % number) for number in range(3))


@pytest.mark.parametrize("byte", [b"k", b"\0"])
def test_rows_with_the_longest_keys_are_repaired_and_scanned_as_others(byte: bytes) -> None:
    """The stage reads each message as its receiver does, which hangs up on what is too long."""
    stage = NodeStage()
    key = byte * NAME_BYTES
    put(stage, (1, 2), key, 1, b"x")
    assert not entries(stage.nodes[3].store, key)
    rounds(stage)
    assert entries(stage.nodes[3].store, key)
    for reverse in (False, True):
        part = Slice(10, reverse=reverse)
        stage.ask(3, ReadRows(request=2, table="plain", part=part, within=1))
        stage.deliver()
        found = stage.answers[-1]
        assert isinstance(found, RowsFound)
        assert [row.key for row in found.rows] == [key]
