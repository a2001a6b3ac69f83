"""Ends that never come do not keep a range from moving."""

import pytest

from tenure import OwnedState
from tests.unit.owned_state.stage import WHOLE, copied, holder, put, stored


@pytest.mark.parametrize("seconds", [1e11, 1e300])
def test_a_value_that_ends_when_nobody_lives_any_more_does_not_end(seconds: float) -> None:
    source, taker = OwnedState[str](ttl=seconds), OwnedState[str]()
    holder(source)
    holder(taker)
    put(source, "ann", "tea")
    with source.at("bob") as it:
        it.value, it.ttl = "milk", seconds
    _, chunks = copied(source, WHOLE)
    for each in chunks:
        taker.import_chunk(WHOLE, each)
    assert [stored(taker, key) for key in ("ann", "bob")] == ["tea", "milk"]
