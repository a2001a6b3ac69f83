"""Gaps and overlaps, as they are read from what members wrote down."""

from pathlib import Path

import pytest

from benchmarks.peers.beliefs import BeliefWriter, Run, holds, read, spans, together, without


def test_what_a_member_wrote_is_read_as_runs_of_equal_answers(tmp_path: Path) -> None:
    writer = BeliefWriter(tmp_path / "m")
    for at, held in ((1.0, 1), (1.01, 1), (1.02, 3), (5.0, 3)):  # it did not run from 1.02 to 5
        writer.add(at, held)
    assert read(tmp_path / "m") == [Run(1, 1.0, 1.01), Run(3, 1.02, 1.02), Run(3, 5.0)]
    assert holds(read(tmp_path / "m"), 1)
    assert read(tmp_path / "nobody") == []


def test_a_member_believes_until_it_is_asked_again_but_not_while_it_does_not_run() -> None:
    runs = [Run(1, 1.0, 1.01), Run(3, 1.02, 1.02), Run(3, 5.0)]
    assert spans(runs, 0, end=6.0) == [(1.0, 1.02), (5.0, 6.0)]
    assert spans(runs, 1, end=6.0) == [(1.02, 1.02), (5.0, 6.0)]


@pytest.mark.parametrize(
    ("other", "gap", "both"),
    [([(3.0, 4.0)], 1.0, 0.0), ([(1.5, 4.0)], 0.0, 0.5), ([(2.0, 3.5)], 0.5, 0.0), ([], 2.0, 0.0)],
)
def test_gaps_and_overlaps_are_those_of_all_holders(
    other: list[tuple[float, float]], gap: float, both: float
) -> None:
    holders = [[(0.0, 2.0)], other]
    assert without(holders, 0.0, 4.0) == pytest.approx(gap)
    assert together(holders, 0.0, 4.0) == pytest.approx(both)
