"""The common parts of stories: how they begin, and that each can end badly."""

from collections.abc import Callable
from typing import Any

import pytest

from lab.mutants.catalogue import mutant, mutants
from lab.mutants.running import run_without
from tenure.base.ranges import WHOLE, KeyRange
from tenure.sim.lease.trial import SKEW_AT_THE_BOUND
from tests.simulation.actors import ManagerActor, OwnerActor
from tests.simulation.stage import BrokenPromise, Stage

KEY = b"k"
LOW, HIGH = KeyRange(b"", b"m"), KeyRange(b"m", None)
SLOW, FAST = -SKEW_AT_THE_BOUND, SKEW_AT_THE_BOUND


NOT_AS_TOLD = ""
"""Stands for a story that breaks no promise, but is not what it claims to be."""


def ends_badly(story: Callable[[], object], without: str, promise: str = NOT_AS_TOLD) -> None:
    """Check that with a rule left out, the story breaks that very promise, or is not what it claims
    to be.
    """
    tier = "blunt" if without in mutants("blunt") else "lease"
    with pytest.raises(AssertionError) as caught:
        run_without(mutant(tier, without), story)
    said = str(caught.value) if caught.type is BrokenPromise else NOT_AS_TOLD
    assert said.startswith(promise) and bool(said) is bool(promise), (  # noqa: PT018 - one claim
        f"breaks {said or caught.value!r}, not {promise or 'what it claims'!r}"
    )


def one_owner(
    *,
    hand_off: bool = False,
    watchdog: float | None = None,
    **manager: Any,  # noqa: ANN401
) -> tuple[Stage, ManagerActor, OwnerActor]:
    """A manager `a` leads, the owner `o` holds every key, and `p` would come after it."""
    stage = Stage()
    stage.prefer((WHOLE, ("o", "p")))
    a = stage.manager("a", **manager)
    o = stage.owner("o", hand_off=hand_off, watchdog=watchdog)
    stage.run(1)
    assert stage.holders(KEY) == ["o"]
    return stage, a, o
