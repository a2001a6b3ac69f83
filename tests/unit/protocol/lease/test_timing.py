"""The presets: every relation between figures that some rule rests on."""

import msgspec
import pytest

from tenure.base.instants import seconds
from tenure.errors import ConfigurationError
from tenure.protocol.lease.timing import DEFAULT, PAPER, PRESETS, Timing, preset

each = pytest.mark.parametrize("timing", PRESETS.values(), ids=PRESETS)


@each
def test_clock_rates_may_differ_by_the_papers_bound(timing: Timing) -> None:
    """Centrifuge 2.3.1."""
    assert timing.hold_ns / timing.term_ns == pytest.approx(65 / 60)


@each
def test_a_lease_is_lost_only_if_three_requests_in_a_row_are(timing: Timing) -> None:
    assert 3 * timing.renew_ns < timing.term_ns


@each
def test_a_recall_ends_before_the_term_that_it_is_told_in(timing: Timing) -> None:
    """P10: and the owner asks at least once before its deadline."""
    assert timing.renew_ns < timing.recall_ns < timing.term_ns


@each
def test_a_hand_off_may_take_as_long_as_several_holds(timing: Timing) -> None:
    """P13: its range is served meanwhile."""
    assert timing.hold_ns < timing.hand_off_ns
    assert timing.recall_ns < timing.hand_off_ns


@each
def test_one_lost_sync_costs_no_contact(timing: Timing) -> None:
    """P17."""
    assert timing.contact_ns >= 2 * timing.sync_ns


@each
def test_a_leader_that_loses_two_beats_still_leads(timing: Timing) -> None:
    """P19."""
    assert timing.leadership_ns > 3 * timing.beat_ns


@each
def test_a_failover_costs_no_owner_its_lease(timing: Timing) -> None:
    """A standby's watch and two looks, and then the rest of the term for finding it."""
    watch_ns = timing.on_any_clock(timing.leadership_ns) + 2 * timing.beat_ns
    assert watch_ns < timing.term_ns - timing.renew_ns


@each
def test_a_change_is_pushed_long_before_it_is_forgotten(timing: Timing) -> None:
    assert timing.push_ns < timing.sync_ns < timing.keep_changes_ns


@each
def test_any_preset_may_follow_any_other(timing: Timing) -> None:
    """P22: a new history waits for what a manager of the same deployment may have promised. The
    test preset too: it may be tried out beside owners whose managers had another.
    """
    assert timing.longest_hold_ns >= max(each.hold_ns for each in PRESETS.values())


@each
def test_asking_in_bunches_costs_few_questions_more(timing: Timing) -> None:
    """Whoever is told to ask early asks at most a bunch early."""
    assert timing.bunch_ns <= min(timing.renew_ns, timing.sync_ns) // 30


@pytest.mark.parametrize("bunch_ns", [0, -1, DEFAULT.renew_ns // 2 + 1, DEFAULT.renew_ns])
def test_bunches_must_be_closer_together_than_questions(bunch_ns: int) -> None:
    """Otherwise a client could be told to ask at once, again and again."""
    with pytest.raises(ConfigurationError, match=r"bunches .* must be above 0, and at most half"):
        msgspec.structs.replace(DEFAULT, bunch_ns=bunch_ns)


def test_a_duration_on_any_clock_is_rounded_up() -> None:
    timing = msgspec.structs.replace(DEFAULT, term_ns=12, hold_ns=13, longest_hold_ns=13)
    assert [timing.on_any_clock(ns) for ns in (0, 1, 12, 13)] == [0, 2, 13, 15]


@pytest.mark.parametrize(
    "change",
    [{"hold_ns": DEFAULT.term_ns}, {"hold_ns": seconds(66)}, {"term_ns": seconds(13)}],
    ids=str,
)
def test_a_term_that_is_not_below_its_hold_is_refused(change: dict[str, int]) -> None:
    with pytest.raises(ConfigurationError, match="must be below the hold"):
        msgspec.structs.replace(DEFAULT, **change)


def test_a_preset_that_is_not_there_names_those_that_are() -> None:
    assert preset("paper") is PAPER
    with pytest.raises(ConfigurationError, match="'fast'; there are paper, default, test"):
        preset("fast")
