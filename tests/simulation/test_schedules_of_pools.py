"""Pools that are deleted, and created again."""

import pytest

from tenure.protocol.lease.answers import PoolDeleted
from tenure.protocol.lease.leader.events import DeletePool, QuestionAsked
from tests.simulation.actors import POOL
from tests.simulation.stories import KEY, one_owner


@pytest.mark.parametrize("compact_after", [1, 1_000])
def test_the_numbers_of_a_deleted_pool_go_on_after_a_failover(compact_after: int) -> None:
    """S3: the key is granted under a number that was never used; the stage sees to that too. The
    lookup hears that the pool is gone, and that all is lost.
    """
    stage, a, o = one_owner(compact_after=compact_after)
    reader = stage.lookup("reader")
    stage.run(1)
    number = o.number_of(KEY)
    assert (number, reader.find(KEY), reader.lost(KEY)) != (None, None, [])
    o.close()
    stage.run(2)
    lost_before = len(reader.lost(KEY))
    a.post(QuestionAsked(1, DeletePool(POOL)))
    stage.run(5)
    assert a.replies[1] == PoolDeleted(POOL, dry_run=False)
    assert (reader.find(KEY), len(reader.lost(KEY))) == (None, lost_before + 1)
    a.kill()
    b = stage.manager("b")
    stage.run_until(lambda: b.leads)
    assert b.leader.pools == {}
    p = stage.owner("p")
    stage.run_until(lambda: stage.holders(KEY) == ["p"])
    assert number is not None
    again = p.number_of(KEY)
    assert again is not None
    assert again > number + 1
    stage.run_until(lambda: reader.find(KEY) == "p")
