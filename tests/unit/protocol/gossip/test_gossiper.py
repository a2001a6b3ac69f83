"""The gossiper: what two and three nodes come to know of each other, and what they refuse."""

from random import Random

import msgspec
import pytest

from tenure.base.noted import Noted
from tenure.protocol.gossip.digest import DIGEST_BYTES, cut_digests
from tenure.protocol.gossip.gossiper_events import (
    GossipHeard,
    GossipPeer,
    KeepPromises,
    MembersKnown,
    PromisesNotKept,
    PromisesRaised,
    StateSet,
    TellAcquitted,
    TellConvicted,
    TellState,
    TellWentBack,
)
from tenure.protocol.gossip.limits import MESSAGE_BYTES
from tenure.protocol.gossip.messages import GossipSyn, NodeDelta, NodeDigest, StateEntry, size_of
from tenure.protocol.gossip.noted import GossiperKind
from tests.unit.protocol.gossip.group import A, B, C, Group, three, with_promises


def test_all_come_to_know_all_from_one_seed() -> None:
    group = three()
    for machine in group.machines.values():
        view = machine.view(group.now)
        assert {each.node for each in view.nodes} == {A, B, C} - {view.own.node}
        assert {each.address for each in view.nodes} <= {"n1", "n2", "n3"}


def test_what_a_node_says_is_told_everywhere_once() -> None:
    group = three()
    group.tell(A, StateSet("load", b"17"))
    group.pass_rounds(5)
    for address in ("n2", "n3"):
        assert group.told[address].count(TellState(A, "load", b"17")) == 1
    version = group.machines["n1"].own.head.version
    group.tell(A, StateSet("load", b"17"))
    assert group.machines["n1"].own.head.version == version


def test_only_the_newest_value_of_a_name_is_told() -> None:
    group = Group()
    group.start(A)
    for load in range(10):
        group.tell(A, StateSet("load", b"%d" % load))
    group.start(B)
    group.pass_rounds(3)
    said = [each for each in group.told["n2"] if isinstance(each, TellState)]
    assert [each.value for each in said if each.key == "load"] == [b"9"]


def test_more_than_a_datagram_is_told_in_the_order_of_versions_without_a_gap() -> None:
    group = Group()
    group.start(A)
    for number in range(100):
        group.tell(A, StateSet(f"key-{number}", bytes(200)))
    group.start(B)
    said: list[str] = []
    for _ in range(100):
        group.pass_rounds(1)
        said = [each.key for each in group.told["n2"] if isinstance(each, TellState)]
        assert said == ["address", *(f"key-{number}" for number in range(100))][: len(said)]
    assert len(said) == 101
    assert group.longest <= MESSAGE_BYTES


def test_values_that_would_leave_a_gap_are_not_taken() -> None:
    group = three()
    known = group.machines["n2"].states[A]
    head = msgspec.structs.replace(known.head, version=9)
    delta = NodeDelta(head, 8, (StateEntry("load", b"1", 9),))
    assert known.take(delta) == []
    assert known.take(msgspec.structs.replace(delta, after=known.head.version)) != []


def test_forty_nodes_talk_in_datagrams_that_fit() -> None:
    group = Group()
    for node in range(1, 41):
        group.start((1 << 62) + node, generation=1_700_000_000)
    group.pass_rounds(12)
    group.tell((1 << 62) + 1, StateSet("load", bytes(256)))
    group.pass_rounds(8)
    assert MESSAGE_BYTES // 2 < group.longest <= MESSAGE_BYTES
    knowing = [
        machine.states[(1 << 62) + 1].get("load") == bytes(256)
        for machine in list(group.machines.values())[1:]
    ]
    assert all(knowing)


def test_a_dead_node_is_convicted_and_acquitted_when_it_is_back() -> None:
    group = three()
    group.stop(A)
    group.pass_rounds(16)
    assert group.told["n2"].count(TellConvicted(A)) == 1
    group.start(A, generation=2)
    group.pass_rounds(3)
    for address in ("n2", "n3"):
        assert group.told[address].count(TellAcquitted(A)) == 1
        assert group.machines[address].states[A].head.generation == 2


def test_a_later_life_tells_all_anew() -> None:
    group = three()
    group.tell(A, StateSet("hints", b"5"))
    group.pass_rounds(4)
    group.stop(A)
    group.start(A, generation=2)
    group.pass_rounds(4)
    assert group.machines["n2"].states[A].get("hints") is None
    assert group.machines["n2"].states[A].get("address") == b"n1"


def test_a_life_whose_generation_was_used_raises_it() -> None:
    group = three()
    group.stop(A)
    group.start(A, generation=0)
    group.pass_rounds(5)
    assert group.machines["n1"].own.head.generation == 2
    assert group.machines["n2"].states[A].head.generation == 2


def test_a_process_that_stood_still_convicts_nobody() -> None:
    group = three()
    kept = group.machines.pop("n2")
    group.pass_rounds(60)
    group.machines["n2"] = kept
    group.pass_rounds(5)
    assert [each for each in group.told["n2"] if isinstance(each, TellConvicted)] == []
    assert GossiperKind.OWN_PAUSE in [
        each.kind for each in group.told["n2"] if isinstance(each, Noted)
    ]


def test_a_member_that_was_never_heard_is_convicted() -> None:
    group = three()
    group.tell(B, MembersKnown((GossipPeer(9, "n9"),)))
    group.pass_rounds(13)
    assert TellConvicted(9) in group.told["n2"]


def test_a_removed_node_is_forgotten_and_not_heard_any_more() -> None:
    group = three()
    for node in (B, C):
        group.tell(node, MembersKnown((GossipPeer(B, "n2"), GossipPeer(C, "n3")), (A,)))
    group.pass_rounds(5)
    for address in ("n2", "n3"):
        machine = group.machines[address]
        assert A not in machine.states
        assert machine.ignored > 0


# --- R26 ----------------------------------------------------------------------------------------


def test_a_node_whose_disk_was_put_back_is_refused_and_told() -> None:
    group = with_promises()
    group.start(A, generation=2, promises=6)
    group.pass_rounds(3)
    assert TellWentBack(A) in group.told["n1"]
    assert group.machines["n1"].has_ended
    assert TellWentBack(A) in group.told["n2"] or TellWentBack(A) in group.told["n3"]


def test_who_has_the_secret_can_have_a_node_doubted_and_ended() -> None:
    """A forged datagram can do only this: it says of a node that it is of a later life, or has
    forgotten. The node itself denies that as soon as it is heard, and no row is read or written.
    """
    group = three()
    later = NodeDigest(B, 5, 1, 0, 0)
    group.tell(A, GossipHeard("forged", GossipSyn(C, "forged", False, (later,))))
    group.pass_rounds(3)
    assert not any(isinstance(told, TellConvicted) for told in group.told["n1"])
    assert not group.machines["n2"].has_ended
    group = with_promises()
    forged = GossipSyn(A, "forged", False, (NodeDigest(A, 9, 1, 0, 6),))
    group.tell(B, GossipHeard("forged", forged))
    group.pass_rounds(3)
    assert any(TellWentBack(A) in told for told in group.told.values())


def test_a_node_that_kept_its_promises_is_taken() -> None:
    group = with_promises()
    group.start(A, generation=2, promises=7)
    group.pass_rounds(3)
    assert all(TellWentBack(A) not in told for told in group.told.values())


def test_a_node_that_was_down_meanwhile_hears_of_it_from_others() -> None:
    group = with_promises()
    group.stop(C)
    group.start(C, generation=2, seeds=("n1", "n2"))  # it remembers nothing
    back = GossipSyn(A, "n1", False, (NodeDigest(A, 2, 1, 0, 6),))
    group.tell(C, GossipHeard("n1", back))
    assert TellWentBack(A) not in group.told["n3"]
    group.pass_rounds(4)
    assert TellWentBack(A) in group.told["n3"]
    assert TellWentBack(A) in group.told["n2"]


def test_what_is_kept_of_promises_counts_in_a_later_life() -> None:
    group = with_promises()
    kept = [each for each in group.told["n3"] if isinstance(each, KeepPromises)][-1]
    assert [(each.node, each.promises) for each in kept.known] == [(A, 7)]
    alone = Group()
    alone.start(C, generation=2, known=kept.known)
    back = GossipSyn(A, "n1", True, (NodeDigest(A, 2, 1, 0, 6),))
    alone.tell(C, GossipHeard("n1", back))
    assert TellWentBack(A) in alone.told["n3"]


def test_a_node_that_is_refused_stays_so_however_much_it_promises() -> None:
    group = with_promises()
    group.tell(B, GossipHeard("n1", GossipSyn(A, "n1", False, (NodeDigest(A, 2, 1, 0, 6),))))
    group.pass_rounds(4)
    assert TellWentBack(A) in group.told["n3"]
    kept = [each for each in group.told["n3"] if isinstance(each, KeepPromises)][-1]
    group.stop(B)
    group.stop(C)
    group.start(C, generation=2, known=kept.known)
    group.tell(C, GossipHeard("n1", GossipSyn(A, "n1", True, (NodeDigest(A, 3, 1, 0, 9),))))
    assert group.machines["n3"].gone_back == {A}
    group.start(A, generation=4, promises=100)
    group.pass_rounds(3)
    assert group.machines["n1"].has_ended


def test_who_refuses_a_node_keeps_that_before_its_next_round() -> None:
    """It may end before that, and the counter of the node may have grown when it is back."""
    group = with_promises()
    back = GossipSyn(A, "n1", False, (NodeDigest(A, 2, 1, 0, 6),))
    group.tell(B, GossipHeard("n1", back))
    kept = [each for each in group.told["n2"] if isinstance(each, KeepPromises)][-1]
    alone = Group()
    alone.start(B, generation=2, known=kept.known)
    alone.tell(B, GossipHeard("n1", GossipSyn(A, "n1", True, (NodeDigest(A, 2, 9, 0, 9),))))
    assert alone.machines["n2"].gone_back == {A}


def test_what_could_not_be_kept_of_promises_is_kept_when_there_is_room() -> None:
    group = with_promises()

    def kept() -> list[KeepPromises]:
        return [each for each in group.told["n3"] if isinstance(each, KeepPromises)]

    before = len(kept())
    group.pass_rounds(3)
    assert len(kept()) == before
    for failed in (1, 2):
        group.tell(C, PromisesNotKept())
        group.pass_rounds(3)
        assert len(kept()) == before + failed
    assert [(each.node, each.promises) for each in kept()[-1].known] == [(A, 7)]


def test_a_late_datagram_of_before_a_promise_accuses_nobody() -> None:
    group = three()
    late = GossipSyn(A, "n1", False, (group.machines["n1"].own.head,))
    group.tell(A, PromisesRaised(7))
    group.pass_rounds(3)
    group.tell(B, GossipHeard("n1", late))
    assert TellWentBack(A) not in group.told["n2"]


# --- clocks and bounds --------------------------------------------------------------------------


def test_a_node_whose_clock_is_off_is_named() -> None:
    group = three()
    syn = GossipSyn(A, "n1", False, ())
    group.tell(B, GossipHeard("n1", syn, ahead_us=-60_000_000))
    noted = [each for each in group.told["n2"] if isinstance(each, Noted)]
    assert [each.detail for each in noted if each.kind is GossiperKind.CLOCK_OFF] == [
        "1 at n1, by -60 s"
    ]
    assert {each.clock_ahead_us for each in group.machines["n2"].view(group.now).nodes} == {
        -60_000_000,
        0,
    }


def test_a_clock_that_is_off_for_days_is_told_once() -> None:
    """Each datagram shows it, several a second; and two such nodes take turns."""
    group = three()
    for second in range(50):
        for node, address in ((A, "n1"), (C, "n3")):
            syn = GossipSyn(node, address, False, ())
            group.tell(B, GossipHeard(address, syn, ahead_us=60_000_000 + second * 1_000_000))
    group.tell(B, GossipHeard("n1", GossipSyn(A, "n1", False, ()), ahead_us=0))
    group.tell(B, GossipHeard("n1", GossipSyn(A, "n1", False, ()), ahead_us=20_000_000))
    noted = [each for each in group.told["n2"] if isinstance(each, Noted)]
    assert [each.detail for each in noted if each.kind is GossiperKind.CLOCK_OFF] == [
        "1 at n1, by 60 s",
        "3 at n3, by 60 s",
        "1 at n1, by 20 s",
    ]


def test_nobody_can_name_nodes_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    group = three()
    for start in range(1_000, 3_000, 20):
        named = tuple(NodeDigest(node, 1, 1, 0) for node in range(start, start + 20))
        group.tell(B, GossipHeard("n1", GossipSyn(A, "n1", False, named)))
    assert len(group.machines["n2"].states) == 1_024


def test_no_digest_takes_more_than_is_reckoned() -> None:
    """If there is room for so many of them, none is measured, and none is left out."""
    largest = NodeDigest((1 << 64) - 1, *4 * [(1 << 63) - 1])
    assert size_of(largest) == DIGEST_BYTES
    for count in range(8):
        for spare in (0, -1):
            cut = cut_digests([largest] * count, Random(1), count * DIGEST_BYTES + spare)
            assert len(cut) == max(count + spare, 0)
