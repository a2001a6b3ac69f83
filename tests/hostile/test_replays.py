"""What was sealed and is sent again: whoever can read what nodes say may repeat it, at any time, to
the node that it was for. It has the seal of the cluster, and nothing comes of it.
"""

from collections import Counter
from collections.abc import Iterable
from random import Random

import msgspec
import pytest

from tenure.base.challenges import Challenge
from tenure.base.instants import Instant
from tenure.columns.replica import META
from tenure.protocol.gossip.gossiper import Gossiper
from tenure.protocol.gossip.gossiper_events import GossiperAction, GossipHeard, SendGossip
from tenure.protocol.gossip.messages import GossipMessage
from tenure.protocol.replication.messages import (
    Adopted,
    NodeMessage,
    PageFound,
    ReadColumn,
    RowWritten,
    WriteRow,
)
from tenure.protocol.replication.node_events import NodeTold
from tenure.protocol.replication.operations import (
    ApplyRow,
    MergeState,
    PromiseFence,
    PromiseHorizon,
    SealHorizon,
)
from tenure.protocol.replication.row.admission import Attempt
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.versions import Version
from tenure.transport.datagram import DatagramSeal
from tenure.transport.port_guard import PortGuard
from tenure.transport.proving import answered
from tests.unit.protocol.gossip.group import A, B, C, Group
from tests.unit.protocol.replication.stage_of_nodes import EPOCH_US, NodeStage, StagedNode
from tests.unit.protocol.replication.test_schedules import adopt
from tests.unit.protocol.replication.test_upkeep import rounds
from tests.unit.transport.test_port_guard import OURS, told

# --- between nodes ------------------------------------------------------------------------------


def kept(node: StagedNode) -> dict[tuple[str, bytes], bytes]:
    """All that a node has on its disk, but for the counter, which only ever rises (R26)."""
    found = {}
    for space in sorted(node.engine.spaces()):
        for key, value in node.engine.cursor(space).walk(b"", None):
            if (space, key) != (META, b"promises"):
                found[space, key] = value
    return found


class Story:
    """Writes, deletes, adoptions and reads of a few rows, some of whose messages are lost."""

    def __init__(self, seed: int) -> None:
        self.draw = Random(seed)
        self.stage = NodeStage()
        self.newest: dict[bytes, bytes | None] = {}
        self.number = 0
        self._time = 0

    def go_on(self, steps: int) -> None:
        for _ in range(steps):
            if self.draw.random() < 0.2:
                self.number += 1
                asked = adopt(self._next(), self.number)
                self._asked(asked, Adopted)
            else:
                self._write(self.draw.choice((b"k", b"l", b"m")))

    def _next(self) -> int:
        self._time += 1
        return self._time

    def _write(self, key: bytes) -> None:
        time = self._next()
        is_owned = self.number > 0 and key == b"k"
        value = None if self.draw.random() < 0.3 else b"%d" % time
        write = WriteRow(
            request=time,
            table="owned" if is_owned else "plain",
            key=key,
            edits=(Edit("names", None, b"a", value),),
            attempt=Attempt(
                Version(self.number if is_owned else 0, EPOCH_US + time), journal=int(is_owned)
            ),
        )
        self._asked(write, RowWritten)
        if not is_owned:
            self.newest[key] = value

    def _asked(self, request: WriteRow | object, wanted: type) -> None:
        stage = self.stage
        stage.ask(self.draw.choice((1, 2, 3)), request)  # type: ignore[arg-type]
        if isinstance(request, WriteRow) and self.draw.random() < 0.3:
            stage.deliver_one()
            stage.lose(self.draw.choice((1, 2, 3)))  # a hint brings it later, or a repair
        stage.deliver()
        if not isinstance(stage.answers[-1], wanted):
            stage.wait(6)
            stage.deliver()

    def read(self, key: bytes) -> bytes | None:
        request = self._next()
        self.stage.ask(
            self.draw.choice((1, 2, 3)),
            ReadColumn(request=request, table="plain", key=key, family="names", name=b"a"),
        )
        self.stage.deliver()
        answer = self.stage.answers[-1]
        assert isinstance(answer, PageFound), answer
        return next((cell.value for cell in answer.page.cells), None)


def replay(stage: NodeStage, said: Iterable[NodeMessage]) -> None:
    """Bring these again. What a node says to that comes, too."""
    for message in said:
        stage.nodes[message.receiver].post(NodeTold(message))
    stage.deliver()


@pytest.mark.parametrize("seed", range(12))
def test_what_nodes_have_said_changes_nothing_when_it_comes_again(seed: int) -> None:
    story = Story(seed)
    story.go_on(30)
    stage = story.stage
    rounds(stage, 14)  # what was deleted is sealed, and hints are handed over
    story.go_on(10)
    rounds(stage, 2)
    said = list(stage.said)
    kinds = Counter(type(each.body) for each in said)
    assert kinds.keys() >= {ApplyRow, PromiseFence, PromiseHorizon, SealHorizon}
    before = {number: kept(node) for number, node in stage.nodes.items()}
    story.draw.shuffle(said)
    replay(stage, said)
    for number, node in stage.nodes.items():
        assert kept(node) == before[number]
    for key, value in story.newest.items():
        assert story.read(key) == value


@pytest.mark.parametrize("seed", range(12))
def test_clients_read_what_was_written_last_while_all_is_said_again_and_again(seed: int) -> None:
    story = Story(seed)
    kinds: Counter[type] = Counter()
    for _ in range(8):
        story.go_on(5)
        said = story.draw.sample(story.stage.said, min(len(story.stage.said), 60))
        kinds.update(type(each.body) for each in said)
        replay(story.stage, said)
        for key, value in story.newest.items():
            assert story.read(key) == value
    assert kinds[ApplyRow]
    assert kinds.total() > 100


def test_a_mend_of_a_former_owners_write_comes_again_and_does_not_count() -> None:
    """R21: the owner has settled the row meanwhile."""
    stage = NodeStage()
    stage.ask(1, adopt(1, 5))
    stage.deliver()
    write = WriteRow(
        request=2,
        table="owned",
        key=b"k",
        edits=(Edit("names", None, b"a", b"former"),),
        attempt=Attempt(Version(5, EPOCH_US + 2), journal=1),
    )
    stage.ask(1, write)
    stage.deliver()
    said = list(stage.said)
    stage.ask(2, adopt(3, 6))
    stage.deliver()
    after = msgspec.structs.replace(
        write,
        request=4,
        edits=(Edit("names", None, b"a", None),),
        attempt=Attempt(Version(6, EPOCH_US + 4), journal=1),
    )
    stage.ask(2, after)
    stage.deliver()
    assert stage.answers[-1] == RowWritten(request=4)
    before = [kept(node) for node in stage.nodes.values()]
    former = [each for each in said if isinstance(each.body, ApplyRow | MergeState)]
    assert former
    replay(stage, former)
    assert [kept(node) for node in stage.nodes.values()] == before


# --- datagrams ----------------------------------------------------------------------------------


class Overheard(Group):
    """A group, all of whose datagrams somebody keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[tuple[str, GossipMessage]] = []
        """The addresses from which they came."""

    def _carry_out(self, address: str, actions: Iterable[GossiperAction]) -> None:
        actions = list(actions)
        self.kept += [(address, each.message) for each in actions if isinstance(each, SendGossip)]
        super()._carry_out(address, actions)

    def replay(self, node: int, count: int) -> None:
        """Send some of them to a node that has begun anew, and knows none of their numbers."""
        for address, message in self.kept[:count]:
            self.tell(node, GossipHeard(address, message))


def test_datagrams_that_come_again_make_nobody_alive_and_vouch_for_nobody() -> None:
    """A life drops what it has heard, by its numbers. A new life has heard nothing."""
    group = Overheard()
    for node in (A, B, C):
        group.start(node)
    group.pass_rounds(20)
    group.stop(C)
    group.pass_rounds(30)
    assert is_down(group, A, C)
    assert is_down(group, B, C)
    kept = len(group.kept)
    group.stop(B)
    group.start(B, generation=2)
    group.replay(B, kept)
    assert C not in group.machines["n2"].vouching
    for _ in range(40):
        group.pass_rounds(1)
        group.replay(B, kept)
        group.replay(A, kept)
    assert is_down(group, A, C)
    assert is_down(group, B, C), "it was heard again and again, and said nothing new"
    for machine in group.machines.values():
        assert not machine.gone_back
        assert not machine.has_ended
    assert C not in group.machines["n2"].vouching


def is_down(group: Group, node: int, other: int) -> bool:
    machine: Gossiper = group.machines[f"n{node}"]
    return machine.detector.is_convicted(other)


def test_a_life_hears_each_datagram_once_in_whatever_order_they_come_again() -> None:
    draw = Random(1)
    here = DatagramSeal(b"sixteen bytes or more", "mail", 1, 1, lambda: 0)
    there = [DatagramSeal(b"sixteen bytes or more", "mail", 2, life, lambda: 0) for life in (1, 2)]
    datagrams = [each.seal(b"%d" % number) for each in there for number in range(50)]
    heard: Counter[bytes] = Counter()
    for _ in range(5):
        heard.update(each for each in datagrams if here.open(each) is not None)
        draw.shuffle(datagrams)
    assert set(heard.values()) == {1}
    assert here.dropped["replay"] + here.dropped["earlier life"] == 4 * len(datagrams)


# --- proofs -------------------------------------------------------------------------------------


def test_a_proof_that_was_overheard_opens_no_port_again() -> None:
    """Neither the same one, nor another, nor the one that takes its place and has forgotten it."""
    secret, at = told(OURS), "http://10.0.0.7:9000"
    now = Instant(1_000)
    guards = [PortGuard(secret, lambda: now) for _ in range(3)]
    first, second, other = guards
    for each in (first, second):
        each.answers_to(at)
    other.answers_to("http://10.0.0.8:9000")
    said = first.challenge(at, "a" * 32, ",".join(secret.ids))
    assert said is not None
    shown = answered(said.encode(), Challenge(at, "a" * 32, ""), secret)
    assert shown is not None
    assert second.refuses(shown, None, None)
    assert other.refuses(shown, None, None)
    assert not first.refuses(shown, None, None)
    for each in guards:
        assert each.refuses(shown, None, None)
