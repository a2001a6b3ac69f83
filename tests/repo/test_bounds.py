"""Bounds: the seconds that the protocol's description names are those that the code computes."""

import pytest

from lab.worlds.lease.trial import Trial
from lab.worlds.lease.world import LeaseWorld
from tenure.protocol.lease.records import WaitedOut
from tenure.protocol.lease.timing import PRESETS
from tests.repo.reading import ROOT

TEXT = (ROOT / "docs/internals/protocol.md").read_text("utf-8")


def row(name: str) -> dict[str, str]:
    """A row of the table of bounds, by preset."""
    cells = [line.strip("|").split("|") for line in TEXT.splitlines() if line.startswith("|")]
    found = [[cell.strip() for cell in each] for each in cells]
    presets = next(each for each in found if each[:2] == ["", "`paper`"])[1:]
    figures = next(each for each in found if each[0] == name)[1:]
    return dict(zip((each.strip("`") for each in presets), figures, strict=True))


def as_said(duration_ns: int) -> str:
    return f"{duration_ns / 1e9:.1f} s"


@pytest.mark.parametrize("preset", PRESETS)
def test_the_bounds_that_are_described_are_those_that_are_checked(preset: str) -> None:
    world = LeaseWorld(Trial(seed=0, timing=PRESETS[preset], journal="durable"))
    assert as_said(world.promise_ns) == row("the outliving")[preset]
    assert as_said(world.loss_bound_ns) == row("S2")[preset]
    assert as_said(world.healing_bound_ns) == row("L1, where a journal begins")[preset]
    world.checkers.committed.apply(WaitedOut())
    assert as_said(world.healing_bound_ns) == row("L1")[preset]
