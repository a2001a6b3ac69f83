"""Schedule 7, and whatever else can happen to state that moves: every step of a hand-off, cut.

`o` serves every key with its state, and everything is planned for `p`. The stage checks with every
new belief that no acknowledged write is missing where `since` says that nothing was lost; a story
says where the range goes, and whether lookups are told of a loss.
"""

import pytest

from tenure.base.ranges import WHOLE
from tenure.protocol.lease.owner import events as owner_events
from tenure.protocol.lease.owner.events import CopiedAhead, HandedOver, HandOver, SendLast
from tenure.protocol.lease.timing import DEFAULT
from tenure.protocol.log.journal import Append
from tests.simulation.actors import LookupActor, ManagerActor, OwnerActor
from tests.simulation.flight import Hold
from tests.simulation.stage import RESPONSES, Stage
from tests.simulation.stories import HIGH, KEY, LOW, ends_badly

STEPS = (HandOver, CopiedAhead, SendLast, HandedOver)
HAND_OFF_S, TERM_S, HOLD_S = DEFAULT.hand_off_ns / 1e9, DEFAULT.term_ns / 1e9, DEFAULT.hold_ns / 1e9


class Play:
    """The processes on the stage, and what was written before anything moved."""

    def __init__(self, *, compact_after: int = 1_000, p_hands_off: bool = True) -> None:
        self.stage = Stage()
        self.stage.prefer((WHOLE, ("o", "p")))
        self.a: ManagerActor = self.stage.manager("a", compact_after=compact_after)
        self.o: OwnerActor = self.stage.owner("o", hand_off=True)
        self.p: OwnerActor = self.stage.owner("p", hand_off=p_hands_off)
        self.lookup: LookupActor = self.stage.lookup("l")
        self.stage.run(1)
        self.stage.transfers.write(self.o, KEY)
        self.stage.transfers.write(self.o, b"z")
        self.since = self.stage.right(KEY).since

    def move(self) -> None:
        """Let everything be planned for `p`."""
        self.stage.prefer((WHOLE, ("p", "o")))
        self.a.plan_anew()
        self.stage.run(0.2)

    def move_up_to(self, step: type) -> Hold:
        """Let everything happen up to a step of the hand-off, which does not arrive."""
        hold = self.stage.hold(step)
        self.move()
        assert hold.caught
        return hold

    def write(self) -> None:
        """Let the owner of the key take a write."""
        [slot] = self.stage.holders(KEY)
        [owner] = [each for each in (self.o, self.p) if each.slot == slot and each.alive]
        self.stage.transfers.write(owner, KEY)

    @property
    def is_unbroken(self) -> bool:
        """Whether nothing was lost since the beginning, and no lookup was told otherwise."""
        assert (self.stage.right(KEY).since == self.since) == (not self.lookup.lost(KEY))
        return self.stage.right(KEY).since == self.since

    def ends(self, holder: str, *, unbroken: bool) -> None:
        """Check that in the end somebody serves the key, and its lookups know whom to ask."""
        self.stage.run(DEFAULT.sync_ns / 1e9 + 2)
        found = self.lookup.find(KEY)
        assert (self.stage.holders(KEY), found) == ([holder], holder)
        assert self.is_unbroken == unbroken
        self.write()


def test_7_a_range_moves_with_its_state_and_nobody_is_told_of_a_loss() -> None:
    play = Play()
    play.move()
    play.ends("p", unbroken=True)
    assert play.o.revoked == []
    play.stage.run(4 * TERM_S)
    play.ends("p", unbroken=True)


# --- 5: what takes longer than a hold -------------------------------------------------------------


@pytest.mark.parametrize("step", [HandOver, CopiedAhead, SendLast, HandedOver])
def test_5_a_hand_off_takes_longer_than_a_hold_while_renewals_go_on(step: type) -> None:
    """P13, P4: the range is served while it is copied; after that no other owner has it."""
    play = Play()
    hold = play.move_up_to(step)
    is_served = step in (HandOver, CopiedAhead)
    for _ in range(3):
        play.stage.run(HOLD_S)
        assert play.stage.holders(KEY) == (["o"] if is_served else [])
        assert play.stage.right(KEY).owner == play.o.machine.belief.incarnation
        if is_served:
            play.write()
    hold.end_and_deliver()
    play.ends("p", unbroken=True)


@pytest.mark.parametrize("step", STEPS)
def test_the_deadline_passes(step: type) -> None:
    """P13: it becomes a recall; the loss is signalled, and `p` begins with nothing."""
    play = Play()
    hold = play.move_up_to(step)
    play.stage.run(HAND_OFF_S + 10)
    play.ends("p", unbroken=False)
    hold.end_and_deliver()
    play.ends("p", unbroken=False)


# --- 7: state that is not what it seems to be -----------------------------------------------------


def written_after_the_export() -> None:
    play = Play()
    hold = play.move_up_to(CopiedAhead)
    play.write()
    hold.end_and_deliver()
    play.ends("p", unbroken=True)


def test_7_what_is_written_after_the_export_is_in_the_last_difference() -> None:
    written_after_the_export()


def written_during_the_last_difference() -> None:
    play = Play()
    hold = play.move_up_to(HandedOver)
    if play.stage.holders(KEY):
        play.write()
    hold.end_and_deliver()
    play.ends("p", unbroken=True)


def test_7_nothing_is_written_while_the_last_difference_is_sent() -> None:
    """P13: the source has ended its belief by then."""
    written_during_the_last_difference()
    ends_badly(written_during_the_last_difference, without="handed-over-while-served")


@pytest.mark.parametrize("is_told", [True, False])
def test_7_the_taker_restarts_after_its_import(*, is_told: bool) -> None:
    """Its state is gone with it, whatever names it: the loss is signalled, unless the source has
    not said yet that the state was taken.
    """
    play = Play()
    hold = play.move_up_to(HandedOver)
    answers = play.stage.hold(*RESPONSES, receiver="p")
    if is_told:
        hold.end_and_deliver()
        assert play.stage.right(KEY).owner == play.p.machine.belief.incarnation
    play.p.kill()
    answers.end()
    play.p = play.stage.owner("p", name="again", hand_off=True)
    play.stage.prefer((WHOLE, ("o", "again")))
    play.stage.run(HOLD_S + 1)
    if not is_told:
        play.o.post(owner_events.HandOffFailed(hold.last.step.order))
        play.stage.settle()
    play.ends("o", unbroken=not is_told)


def an_import_of_an_earlier_number() -> None:
    """`p` has all that `o` wrote, and `o` is dead: the range is granted to `p` without its state.
    The answer is lost, and `p` asks again, with what it has.
    """
    play = Play()
    play.move_up_to(HandedOver)
    play.o.kill()
    play.stage.run(HOLD_S - 3)
    answers = play.stage.hold(*RESPONSES, receiver="p")
    play.stage.run_until(lambda: play.stage.right(KEY).owner == play.p.machine.belief.incarnation)
    answers.end()
    play.ends("p", unbroken=False)
    assert play.p.values.get(b"z") is None, "what was lost does not come back"


def test_7_an_import_of_an_earlier_number_is_not_used() -> None:
    an_import_of_an_earlier_number()
    ends_badly(an_import_of_an_earlier_number, without="import-of-an-earlier-number", promise="S2")


def the_return_was_not_journaled(*, append_arrives: bool) -> None:
    play = Play()
    word = play.move_up_to(HandedOver)
    appends = play.stage.hold(Append, sender="a")
    word.end_and_deliver()
    if append_arrives:
        appends.last.take_effect()
    play.a.kill()
    appends.end()
    play.a = play.stage.manager("b")
    play.stage.run(5)
    play.ends("p", unbroken=True)


@pytest.mark.parametrize("append_arrives", [True, False])
def test_7_the_leader_dies_with_the_return_in_its_hands(*, append_arrives: bool) -> None:
    """P13, P19: the source repeats it until it is told that it is journaled."""
    the_return_was_not_journaled(append_arrives=append_arrives)


def test_7_a_grant_whose_answer_was_lost_is_made_again_with_its_since() -> None:
    play = Play()
    word = play.move_up_to(HandedOver)
    answers = play.stage.hold(*RESPONSES, receiver="p")
    word.end_and_deliver()
    first = play.stage.right(KEY)
    assert (first.owner, play.stage.holders(KEY)) == (play.p.machine.belief.incarnation, [])
    play.stage.run(2.5)
    answers.end()
    play.ends("p", unbroken=True)
    assert play.stage.right(KEY).number > first.number


@pytest.mark.parametrize("step", STEPS)
def test_an_import_whose_grant_never_comes_is_discarded(step: type) -> None:
    """The source died with its word in its mouth; nobody can say that nothing was written since."""
    play = Play()
    play.move_up_to(step)
    play.o.kill()
    play.stage.run(HOLD_S + 1)
    play.stage.transfers.break_off(play.o)
    play.ends("p", unbroken=False)
    assert play.p.values.get(b"z") is None


# --- who dies, and when ---------------------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS)
def test_the_taker_dies_and_the_source_goes_on_with_its_state(step: type) -> None:
    play = Play()
    hold = play.move_up_to(step)
    number = play.stage.right(KEY).number
    play.p.kill()
    play.stage.prefer((WHOLE, ("o",)))
    play.stage.run(0.5)
    hold.end()
    if step in (HandOver, SendLast):
        hold.last.deliver()  # it finds nobody
    elif step is HandedOver:
        play.stage.run(HOLD_S + 1)
        hold.last.deliver()
    play.stage.run(HOLD_S)
    play.ends("o", unbroken=True)
    assert play.stage.right(KEY).number >= number


@pytest.mark.parametrize("step", STEPS)
def test_a_takeover_in_every_step(step: type) -> None:
    """Whatever was under way is finished, or taken back and begun again: owners say what it was."""
    play = Play()
    hold = play.move_up_to(step)
    play.a.kill()
    play.a = play.stage.manager("b")
    play.stage.run(6)
    hold.end_and_deliver()
    play.stage.run(1)
    play.ends("p", unbroken=True)


@pytest.mark.parametrize("step", [SendLast, HandedOver])
def test_a_source_whose_term_ran_out_gets_nothing_back(step: type) -> None:
    """P13: it may have missed that others had the range meanwhile."""
    play = Play()
    play.move_up_to(step)
    mend = play.stage.part("o", "a", "b")
    play.stage.run(TERM_S + 2)
    mend()
    play.stage.run(HOLD_S)
    play.ends("p", unbroken=False)


def test_a_taker_whose_term_ran_out_has_nothing_to_be_granted() -> None:
    play = Play()
    word = play.move_up_to(HandedOver)
    mend = play.stage.part("p", "a", "b")
    word.end_and_deliver()
    assert play.stage.right(KEY).owner == play.p.machine.belief.incarnation
    play.stage.run(TERM_S)
    mend()
    play.stage.run(HOLD_S)
    play.ends("p", unbroken=False)


def the_import_is_lost_before_it_is_granted() -> None:
    play = Play()
    word = play.move_up_to(HandedOver)
    play.p.lose(word.last.step.order)
    word.end_and_deliver()
    play.ends("p", unbroken=False)


def test_what_the_taker_lost_before_it_was_granted_is_lost_for_all_to_know() -> None:
    the_import_is_lost_before_it_is_granted()
    ends_badly(
        the_import_is_lost_before_it_is_granted, without="granted-without-the-import", promise="S2"
    )


def test_the_snapshot_of_a_compacted_journal_knows_which_state_belongs_to_a_grant() -> None:
    """P21."""
    play = Play(compact_after=1)
    word = play.move_up_to(HandedOver)
    answers = play.stage.hold(*RESPONSES, receiver="p")
    word.end_and_deliver()
    play.stage.run(0.5)
    assert play.stage.journal.state.pools[0].handed
    play.a.kill()
    answers.end()
    play.a = play.stage.manager("b")
    play.stage.run(5)
    play.ends("p", unbroken=True)


# --- plans that change ----------------------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS)
def test_the_plan_changes_back_in_every_step(step: type) -> None:
    play = Play()
    hold = play.move_up_to(step)
    play.stage.prefer((WHOLE, ("o", "p")))
    play.a.plan_anew()
    play.stage.run(5)
    assert play.stage.holders(KEY) == ["o"], "it is not left alone until the deadline"
    hold.end_and_deliver()
    play.ends("o", unbroken=True)


@pytest.mark.parametrize("step", STEPS)
def test_the_plan_names_another_taker_in_every_step(step: type) -> None:
    play = Play()
    hold = play.move_up_to(step)
    q = play.stage.owner("q", hand_off=True)
    play.stage.prefer((WHOLE, ("q",)))
    hold.end()
    play.stage.run(5)
    assert q.number_of(KEY) is not None
    hold.last.deliver()
    play.stage.run(2)
    assert (play.stage.holders(KEY), play.is_unbroken) == (["q"], True)
    assert q.values == {KEY: 1, b"z": 2}


@pytest.mark.parametrize("step", STEPS)
def test_the_plan_splits_the_range_in_every_step(step: type) -> None:
    play = Play()
    hold = play.move_up_to(step)
    play.stage.prefer((LOW, ("p",)), (HIGH, ("o",)))
    play.a.plan_anew()
    hold.end()
    play.stage.run(5)
    hold.last.deliver()
    play.stage.run(2)
    assert (play.stage.holders(KEY), play.stage.holders(b"z")) == (["p"], ["o"])
    assert play.lookup.losses == []


# --- leaving --------------------------------------------------------------------------------------


def test_who_drains_hands_everything_over_and_goes() -> None:
    play = Play()
    play.o.drain()
    play.stage.run(1)
    assert play.o.closed
    play.ends("p", unbroken=True)


def test_the_first_answer_to_who_drains_orders_everything() -> None:
    play = Play()
    orders = play.stage.hold(HandOver)
    answers = play.stage.hold(*RESPONSES, receiver="o")
    play.o.drain()
    answers.end()
    answers.caught[0].deliver()
    assert [parcel.step.order.range for parcel in orders.caught] == [WHOLE]


def test_the_last_owner_that_drains_returns_everything_and_goes() -> None:
    play = Play()
    play.p.close()
    play.o.drain()
    play.stage.run(1)
    assert (play.o.closed, play.stage.right(KEY).owner) == (True, 0)
    assert [lease.range for lease in play.o.revoked] == [WHOLE]
    assert play.lookup.lost(KEY) == ["lost"]


def test_who_drains_beside_an_owner_that_cannot_hand_over_returns_everything() -> None:
    play = Play(p_hands_off=False)
    play.o.drain()
    play.stage.run(1)
    assert play.o.closed
    play.ends("p", unbroken=False)


@pytest.mark.parametrize("step", STEPS)
def test_the_taker_drains_in_every_step(step: type) -> None:
    """The state stays with the source, and the taker does not wait for it for ever."""
    play = Play()
    hold = play.move_up_to(step)
    play.stage.prefer((WHOLE, ("p", "o")))
    play.p.drain()
    play.stage.run(1)
    hold.end_and_deliver()
    play.stage.run(5)
    play.ends("o", unbroken=True)
    assert play.p.closed


@pytest.mark.parametrize("step", STEPS)
def test_who_must_go_in_the_middle_of_a_hand_off_tells_of_the_loss(step: type) -> None:
    """The deadline of a drain: it closes, and what has not arrived is lost."""
    play = Play()
    hold = play.move_up_to(step)
    play.o.close()
    play.stage.run(1)
    hold.end_and_deliver()
    play.ends("p", unbroken=False)
    assert play.o.closed
