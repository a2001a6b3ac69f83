"""Levels: how many answers are needed, of which nodes (5.2, R15)."""

import pytest

from tenure.protocol.replication.levels import Level, Need, are_met, fewest, may_be_met, needs_of

EAST, WEST = (1, 2, 3), (4, 5, 6)
LIST = (*EAST, *WEST)


def datacentre_of(node: int) -> str:
    return "east" if node in EAST else "west"


def needs(level: Level, *lists: tuple[int, ...], local: str = "east") -> list[Need]:
    return needs_of(lists or (LIST,), level, datacentre_of, local)


@pytest.mark.parametrize(
    ("level", "enough", "too_few"),
    [
        ("one", {6}, set()),
        ("quorum", {1, 2, 3, 4}, {1, 2, 3}),
        ("all", {1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5}),
        ("local_quorum", {1, 3}, {1, 4, 5, 6}),
        ("each_quorum", {1, 2, 4, 6}, {1, 2, 3, 4}),
    ],
)
def test_a_level_asks_for_so_many_of_these(
    level: Level, enough: set[int], too_few: set[int]
) -> None:
    asked = needs(level)
    assert are_met(asked, enough)
    assert not are_met(asked, too_few)
    assert may_be_met(asked, set(LIST) - enough)
    assert not may_be_met(asked, set(LIST) - too_few)


def test_in_the_joint_step_both_lists_must_meet_the_level() -> None:
    asked = needs("quorum", (1, 2, 3), (2, 3, 4))
    assert are_met(asked, {2, 3})
    assert not are_met(asked, {1, 2})
    assert not are_met(asked, {1, 4})


def test_where_a_datacentre_has_no_replica_its_quorum_cannot_be_met() -> None:
    asked = needs("local_quorum", WEST)
    assert not are_met(asked, set(LIST))
    assert not may_be_met(asked, set())


def test_two_that_meet_a_quorum_share_a_node_also_while_the_ring_changes() -> None:
    lists = ((1, 2, 3), (2, 3, 4))
    steps = [(lists[0],), lists, (lists[1],)]
    nodes = {1, 2, 3, 4}
    for one, other in ((steps[0], steps[1]), (steps[1], steps[1]), (steps[1], steps[2])):
        meeting = [
            [
                {node for place, node in enumerate(sorted(nodes)) if bits >> place & 1}
                for bits in range(1 << len(nodes))
            ]
            for _ in range(2)
        ]
        writes = [each for each in meeting[0] if are_met(needs("quorum", *one), each)]
        reads = [each for each in meeting[1] if are_met(needs("quorum", *other), each)]
        assert writes
        assert reads
        assert all(write & read for write in writes for read in reads)


def test_as_few_as_are_needed_are_asked_and_the_nearest_first() -> None:
    assert fewest(needs("quorum", EAST), [3, 1, 2]) == [3, 1]
    assert fewest(needs("each_quorum"), [6, 5, 4, 3, 2, 1]) == [3, 2, 6, 5]
    assert fewest(needs("all", EAST), [3, 1]) == [3, 1], "those that are up"
