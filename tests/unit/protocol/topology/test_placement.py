"""Replicas: in as many racks as there can be, N - 1 ranges to a node, with the least change.

All rings of up to seven nodes, in three racks and two data centres, with up to four replicas are
tried by `python -m tests.unit.protocol.topology.all_rings`; here those of up to five.
"""

import pytest

from tenure.protocol.topology.placement import TooFewNodes, placed
from tenure.protocol.topology.records import Placement
from tests.unit.protocol.topology.all_rings import PLACEMENTS, try_rings
from tests.unit.protocol.topology.rings import node, ring


@pytest.mark.parametrize("placement", PLACEMENTS, ids=str)
def test_every_small_ring_is_placed_as_well_as_it_can_be(placement: Placement) -> None:
    assert try_rings(placement, up_to=4 if placement.datacentres else 5, twin_up_to=4) > 0


@pytest.mark.parametrize("count", range(3, 30))
def test_without_racks_no_node_replicates_more_than_n_less_one_ranges(count: int) -> None:
    nodes = [node(place, token=place + 1) for place in range(count)]
    for placement in (Placement("rack_unaware", 3), Placement("rack_aware", 3)):
        lists, excess = placed(placement, nodes, {})
        held = [by for of in lists.values() for by in of]
        assert all(held.count(each.id) == 3 for each in nodes)
        assert excess == {}


def test_where_racks_are_uneven_the_short_one_is_named() -> None:
    nodes = ring([(0, 0), (0, 1), (0, 1), (0, 1)])
    found = placed(Placement("rack_aware", 2), nodes, {})
    assert [found.lists[each][-1] for each in (2, 3, 4)] == [1, 1, 1]
    assert found.excess == {"e/r0": 2}


def test_a_data_centre_that_has_too_few_nodes_is_named() -> None:
    placement = Placement("datacentre_aware", 3, (("e", 2), ("w", 1)))
    with pytest.raises(TooFewNodes, match="1 nodes in the data centre 'e'"):
        placed(placement, ring([(0, 0), (1, 0), (1, 1)]), {})
    with pytest.raises(TooFewNodes, match="in which the placement e=1 has no replicas"):
        placed(Placement("datacentre_aware", 1, (("e", 1),)), ring([(0, 0), (1, 0)]), {})


def test_two_nodes_do_not_keep_three_replicas() -> None:
    with pytest.raises(TooFewNodes, match="cannot place 3 replicas of each range on 2 nodes"):
        placed(Placement(), ring([(0, 0), (0, 0)]), {})
