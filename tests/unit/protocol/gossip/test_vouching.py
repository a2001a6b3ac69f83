"""A life of a node takes part when others vouch for it, or are no longer heard (R26)."""

from tenure.base.instants import SECOND_NS, Instant
from tenure.protocol.gossip.gossiper_events import (
    GossipPeer,
    MembersKnown,
    SendGossip,
    TellConvicted,
    TellVouched,
)
from tests.unit.protocol.gossip.group import A, B, C, Group, with_promises


def know_the_ring(group: Group, *nodes: int) -> None:
    members = tuple(GossipPeer(node, f"n{node}") for node in (A, B, C))
    for node in nodes:
        group.tell(node, MembersKnown(members, (), (A, B, C)))


def takes_part(group: Group, node: int) -> bool:
    return TellVouched() in group.told[f"n{node}"]


def test_nodes_that_start_together_vouch_for_each_other() -> None:
    group = Group()
    for node in (A, B, C):
        group.start(node)
    know_the_ring(group, A, B, C)
    assert not any(takes_part(group, node) for node in (A, B, C))
    group.pass_rounds(4)
    assert [told.count(TellVouched()) for told in group.told.values()] == [1, 1, 1]


def test_a_life_asks_to_be_vouched_for_between_its_rounds() -> None:
    group = Group()
    group.start(B)
    know_the_ring(group, B)
    group.pass_rounds(20)  # C is convicted
    group.start(A, seeds=())
    know_the_ring(group, A)
    before = group.machines["n1"].own.head.heartbeat
    asked = group.machines["n1"].advance(group.now).actions
    assert {each.address for each in asked if isinstance(each, SendGossip)} == {"n2", "n3"}
    assert group.machines["n1"].own.head.heartbeat == before, "that is not the rhythm of its rounds"
    group._carry_out("n1", asked)
    assert group.machines["n1"].vouching == {B}


def test_a_node_that_hears_nobody_takes_no_part() -> None:
    group = Group()
    group.start(A)
    know_the_ring(group, A)
    group.pass_rounds(60)
    assert not takes_part(group, A)


def test_the_only_node_of_a_ring_takes_part_at_once() -> None:
    group = Group()
    group.start(A)
    group.tell(A, MembersKnown((GossipPeer(A, "n1"),), (), (A,)))
    assert takes_part(group, A)


def test_whoever_may_know_better_is_waited_for_until_it_is_convicted() -> None:
    group = Group()
    group.start(A)
    group.start(B)
    know_the_ring(group, A, B)
    group.pass_rounds(5)
    assert group.machines["n1"].vouching == {B}
    assert not takes_part(group, A)
    group.pass_rounds(20)
    assert takes_part(group, A)


def rejoining(*parted: frozenset[str]) -> Group:
    """A begins a life, and the others run."""
    group = Group()
    for node in (B, C):
        group.start(node)
    know_the_ring(group, B, C)
    group.pass_rounds(5)
    group.parted = set(parted)
    group.start(A, seeds=("n3",))
    know_the_ring(group, A)
    group.pass_rounds(6)
    assert not takes_part(group, A)
    return group


def test_whoever_is_heard_only_by_way_of_others_is_not_waited_for_for_ever() -> None:
    """It is never convicted: the third node tells both that the other one is up."""
    group = rejoining(frozenset({"n1", "n2"}))
    assert group.machines["n1"].vouching == {C}
    group.pass_rounds(8)
    assert takes_part(group, A)
    assert TellConvicted(B) not in group.told["n1"]


def test_what_a_node_that_stood_still_did_not_hear_is_waited_for_all_the_same() -> None:
    group = rejoining(frozenset({"n1", "n2"}))
    group.now = Instant(group.now + 8 * SECOND_NS)
    group._carry_out("n1", group.machines["n1"].advance(group.now).actions)
    assert not takes_part(group, A)
    group.pass_rounds(8)
    assert takes_part(group, A)


def test_where_most_are_not_heard_nobody_takes_part_however_long_it_waits() -> None:
    group = rejoining(frozenset({"n1", "n2"}), frozenset({"n1", "n3"}))
    group.pass_rounds(60)
    assert not takes_part(group, A)


def test_a_node_that_went_back_does_not_take_part_though_one_that_was_down_vouches() -> None:
    group = with_promises()
    group.stop(C)
    know = group.machines.pop("n2")  # it hears nothing for a while
    group.start(C, generation=2, seeds=("n1",))  # it remembers nothing
    group.start(A, generation=2, promises=6, seeds=("n3",))
    know_the_ring(group, A, C)
    group.pass_rounds(5)
    assert group.machines["n1"].vouching == {C}
    group.machines["n2"] = know
    group.pass_rounds(5)
    assert group.machines["n1"].has_ended
    assert not takes_part(group, A)


def test_where_a_topology_says_that_a_node_hears_now_it_is_asked() -> None:
    group = Group()
    group.start(B)
    group.start(A, seeds=())
    group.tell(A, MembersKnown((GossipPeer(B, "gone"),), (), (A, B)))
    group.pass_rounds(3)
    assert not takes_part(group, A)
    group.tell(A, MembersKnown((GossipPeer(B, "n2"),), (), (A, B)))
    group.pass_rounds(3)
    assert takes_part(group, A)
