"""Durations: exact to the nanosecond, whatever was written."""

import pytest

from tenure.base.instants import in_seconds, seconds


@pytest.mark.parametrize(
    ("written", "ns"), [(0, 0), (1.2, 1_200_000_000), (0.1 + 0.2, 300_000_000)]
)
def test_seconds_are_rounded_to_nanoseconds(written: float, ns: int) -> None:
    assert seconds(written) == ns
    assert in_seconds(ns) == pytest.approx(written)
