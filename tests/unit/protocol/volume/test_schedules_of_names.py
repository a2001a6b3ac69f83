"""Schedules of names and numbers that the simulator found in worlds with owners."""

from random import Random

from tenure.base.instants import Instant
from tenure.protocol.volume.messages import Item
from tenure.protocol.volume.server.readers import Readers
from tenure.protocol.volume.server.terms import Terms
from tests.unit.protocol.volume.stage import K, held


def test_a_server_that_is_known_by_two_names() -> None:
    """Its other name reconnects: what is on record under the first stays, or it could be hit
    after it was written (V2, V8).
    """
    stage = held("a")
    cache = stage.caches["a"]
    cache.questions.reconnect(stage.now("a"), cache.context.contact("s by another name"))
    stage.do_cache("a", cache.advance(stage.now("a")))
    stage.carry("Reconnect", of="a")
    stage.write()
    assert not stage.bodies
    stage.carry("Invalidate", to="a")
    assert stage.hit("a") is None


def test_two_items_of_one_object_acknowledged_in_the_other_order() -> None:
    """The first is still waited for, so both are on record; messages overtake each other."""
    readers = Readers(Terms(), Random(1))
    reader = readers.add(Instant(0), client=5, sequence=1)
    first, second = 1, 2
    for number, wait in ((first, 11), (second, 12)):
        item = Item(item=number, key=K, number=7, count=1)
        readers.add_item(reader, item, [wait])
    assert readers.acknowledged(reader, [second]) == [(12, second)]
    assert readers.acknowledged(reader, [first]) == [(11, first)]
    assert reader.items == {}
    readers.invariants()
