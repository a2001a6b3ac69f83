"""The owner machine: what each input may do."""

from collections.abc import Callable
from itertools import pairwise

import msgspec
import pytest

from tenure.base.instants import FAR_FUTURE, Instant, seconds
from tenure.base.noted import Level, Noted
from tenure.protocol.lease.client_events import ManagerLost
from tenure.protocol.lease.messages import (
    Held,
    Hello,
    Introduction,
    Join,
    Leased,
    LeaseRequest,
    Poke,
    Standby,
    ToOwner,
)
from tenure.protocol.lease.owner import events
from tests.unit.protocol.lease.driven_owner import (
    JOURNAL,
    PHASES,
    TERM_NS,
    Driven,
    at,
    closed,
    holding,
    introduction,
    joining,
    letting_go,
    numbered,
    recalled,
    refusal,
    renewing,
    response,
    searching,
    whole,
)

# --- finding and joining --------------------------------------------------------------------------


def test_it_begins_by_asking_everybody_who_leads() -> None:
    assert [type(message) for message in searching().asked()] == [Hello, Hello]


def test_an_introduction_that_answers_another_hello_is_not_taken() -> None:
    driven = searching()
    old = introduction(driven)
    driven.advance(at(1))
    driven.hear(old)
    assert (driven.said(), driven.is_idle()) == (["old introduction"], True)


def another_leader(driven: Driven) -> Introduction:
    return msgspec.structs.replace(introduction(driven), manager_nonce=78)


def test_another_leader_under_the_same_number_is_not_followed_but_told() -> None:
    """P22: it leads on an old copy. The question that it answers had the first one's receipt."""
    driven = renewing()
    driven.take(ManagerLost("a"))
    [told, _] = driven.asked()
    assert isinstance(told, Hello)
    assert told.receipt == b"sealed"
    before = driven.machine.leadership, driven.machine.manager_nonce, driven.machine.manager
    driven.hear(another_leader(driven), manager="b")
    assert driven.said() == ["another leader under the same leadership"]
    machine = driven.machine
    assert (machine.leadership, machine.manager_nonce, machine.manager) == before
    assert driven.machine.search.is_on
    again = Introduction(
        journal=JOURNAL,
        leadership=1,
        manager_nonce=78,
        token=0,
        owner_nonce=machine.owner_nonce,
        sequence=machine.sequence,
    )
    driven.hear(again, manager="a")
    assert driven.is_idle()


def test_whoever_holds_asks_as_often_where_answers_are_slow_and_hears_them() -> None:
    """P22: a manager that listens for two seconds must hear it, whatever it waits for itself."""
    driven = holding()
    driven.advance(at(3))
    driven.hear(response(driven, whole()), at(3.9))
    driven.take(ManagerLost("a"))
    asked_at, first = [at(3.9)], introduction(driven)
    while driven.wake_at < at(5.6):
        driven.advance(driven.wake_at)
        asked_at += [driven.now] if any(isinstance(m, Hello) for m in driven.asked()) else []
    assert len(asked_at) >= 4
    assert max(b - a for a, b in pairwise([*asked_at, driven.wake_at])) <= seconds(1.5)
    driven.hear(
        msgspec.structs.replace(first, manager_nonce=78, leadership=2), at(5.6), manager="b"
    )
    assert driven.machine.manager == "b"


def test_whoever_holds_asks_who_leads_to_the_end_of_its_term_and_says_whose_history_it_has() -> (
    None
):
    """P22: a manager that listens for two seconds hears it, whenever it begins."""
    driven = holding()
    driven.take(ManagerLost("a"))
    asked_at, hellos = [at(0)], [m for m in driven.asked() if isinstance(m, Hello)]
    while driven.wake_at < at(12):
        driven.advance(driven.wake_at)
        said = [m for m in driven.asked() if isinstance(m, Hello)]
        asked_at += [driven.now] if said else []
        hellos += said
    assert max(b - a for a, b in pairwise([*asked_at, at(12)])) <= seconds(1.5)
    assert {each.journal for each in hellos} == {JOURNAL}


def test_who_has_no_number_yet_follows_another_leader_under_the_same_number() -> None:
    """It holds nothing, and cannot contradict anybody."""
    driven = joining()
    driven.take(ManagerLost("a"))
    driven.hear(another_leader(driven), manager="b")
    assert (driven.machine.manager, driven.machine.manager_nonce) == ("b", 78)


def test_of_two_that_say_they_lead_the_later_is_taken() -> None:
    """The first was overtaken, and does not know it yet."""
    driven = joining()
    driven.hear(introduction(driven, leadership=2), manager="b")
    assert (driven.machine.manager, driven.machine.leadership) == ("b", 2)
    driven.hear(introduction(driven, leadership=1))
    assert driven.machine.manager == "b"


def test_a_join_is_followed_by_a_request_that_shows_that_it_lives() -> None:
    """P9."""
    [request] = numbered().asked()
    assert isinstance(request, LeaseRequest)
    assert (request.incarnation, request.held, request.leaving) == (1, (), False)


def test_a_manager_with_another_nonce_introduces_itself_and_is_asked_again() -> None:
    """P2: it leads again; the request was made for its first time."""
    driven = renewing()
    machine = driven.machine
    driven.hear(
        Introduction(
            journal=JOURNAL,
            leadership=2,
            manager_nonce=78,
            token=0,
            owner_nonce=machine.owner_nonce,
            sequence=machine.sequence,
        )
    )
    [request] = driven.asked()
    assert isinstance(request, LeaseRequest)
    assert (request.manager_nonce, request.leadership) == (78, 2)
    assert request.held == (Held(start=b"", end=None, number=5),)


# --- asking ---------------------------------------------------------------------------------------


def test_a_request_lists_everything_and_is_repeated_under_a_new_number() -> None:
    """P1."""
    driven = renewing()
    [first] = driven.asked()
    driven.advance(at(4))
    [second] = driven.asked()
    assert isinstance(first, LeaseRequest)
    assert isinstance(second, LeaseRequest)
    assert (second.sequence, second.held) == (first.sequence + 1, first.held)


def test_it_renews_in_time_and_not_before() -> None:
    driven = holding()
    assert driven.wake_at == at(3)
    driven.advance(at(2.9))
    assert driven.actions == []


def test_a_poke_is_answered_by_one_request_and_remembered_while_one_is_under_way() -> None:
    """P1."""
    driven = holding()
    driven.hear(Poke(), at(1))
    assert len(driven.asked()) == 1
    for _ in range(3):
        driven.hear(Poke())
        assert driven.asked() == []
    driven.hear(response(driven, whole()))
    assert len(driven.asked()) == 1
    driven.hear(response(driven, whole()))
    assert driven.asked() == []


@pytest.mark.parametrize("message", [Poke(), Standby(leader=None)])
def test_what_another_manager_says_of_itself_changes_nothing(message: ToOwner) -> None:
    driven = holding()
    driven.hear(message, at(1), manager="b")
    assert driven.actions == []


# --- answers --------------------------------------------------------------------------------------


def test_the_term_counts_from_when_the_request_was_sent() -> None:
    """P3."""
    driven = renewing()
    driven.hear(response(driven, whole()), at(3.9))
    assert driven.machine.belief.expires_at == at(3) + TERM_NS


def test_what_is_granted_is_held_before_it_is_told() -> None:
    """`on_grant` may ask `check` at once."""
    driven = numbered()
    driven.hear(response(driven, whole("granted")))
    kinds = [type(action) for action in driven.actions]
    assert kinds.index(events.Hold) < kinds.index(events.Grant)


def test_an_answer_that_grants_too_late_is_no_grant_that_goes_on() -> None:
    driven = numbered()
    answer = response(driven, whole("granted"))
    driven.machine._ask_at = FAR_FUTURE  # a stall: no timer went off
    driven.hear(answer, Instant(TERM_NS))
    assert driven.machine.belief.leases == ()
    holds = [action for action in driven.actions if isinstance(action, events.Hold)]
    assert all(hold.holdings.leases == () for hold in holds[-1:])


@pytest.mark.parametrize(
    "change",
    [
        {"sequence": 1},
        {"owner_nonce": 3},
        {"manager_nonce": 3},
        {"journal": 3},
        {"leadership": 0},
        {"leadership": 2},
        {"incarnation": 0},
        {"incarnation": 2},
    ],
    ids=str,
)
def test_an_answer_that_is_not_to_the_newest_request_is_not_taken(change: dict[str, int]) -> None:
    """P2: by each of the numbers that stand on it."""
    driven = renewing()
    driven.hear(msgspec.structs.replace(response(driven, whole()), **change), at(3.5))
    assert (driven.said(), driven.is_idle()) == (["old answer"], True)
    assert driven.machine.belief.expires_at == TERM_NS


def test_the_same_answer_twice_is_taken_once() -> None:
    driven = renewing()
    answer = response(driven, whole())
    driven.hear(answer, at(3.5))
    driven.hear(answer, at(3.6))
    assert driven.said() == ["old answer"]


def test_a_refusal_of_an_older_request_is_not_taken() -> None:
    driven = renewing()
    old = refusal(driven, "name_held")
    driven.advance(at(4))
    driven.hear(old)
    assert driven.said() == ["old answer"]


def test_who_is_past_hears_it_unasked_and_late() -> None:
    """An eviction is told at once; and nothing undoes it, whatever was asked meanwhile."""
    for late in (0, 1):
        driven = renewing()
        said = refusal(driven, "past")
        driven.advance(at(4))
        driven.hear(msgspec.structs.replace(said, sequence=said.sequence - late))
        assert (driven.machine.phase, driven.machine.belief.leases) == ("joining", ())


def test_what_is_said_to_another_life_is_not_taken() -> None:
    driven = renewing()
    said = refusal(driven, "past")
    for field in ("owner_nonce", "manager_nonce", "journal", "leadership"):
        driven.hear(msgspec.structs.replace(said, **{field: 12345}))
        assert (driven.machine.phase, driven.machine.belief.leases) == ("joined", (whole(),))


def test_who_is_past_drops_everything_and_joins_as_another() -> None:
    """P9."""
    driven = renewing()
    nonce = driven.machine.owner_nonce
    driven.hear(refusal(driven, "past"))
    [join] = driven.asked()
    assert isinstance(join, Join)
    assert (join.owner_nonce != nonce, driven.machine.belief.leases) == (True, ())


@pytest.mark.parametrize("retry_ns", [0, 1, seconds(0.5), seconds(60), FAR_FUTURE])
def test_who_is_refused_asks_again_soon_but_not_at_once(retry_ns: int) -> None:
    """However long the wait by right: the name may come free by its owner leaving."""
    driven = joining()
    driven.hear(refusal(driven, "name_held", retry_ns))
    assert seconds(0.1) <= driven.wake_at - driven.now <= seconds(1)


# --- ending ---------------------------------------------------------------------------------------


def test_everything_ends_with_the_term_and_stays_ended() -> None:
    """P6."""
    driven = renewing()
    answer = response(driven, whole())
    driven.machine._ask_at = FAR_FUTURE
    driven.hear(answer, Instant(TERM_NS))
    assert driven.machine.belief.leases == ()
    kinds = [type(action) for action in driven.actions]
    assert kinds.index(events.Hold) < kinds.index(events.Revoke)


def test_a_reader_that_saw_the_end_ends_it() -> None:
    """S3: although by the machine's clock there is time."""
    driven = holding()
    driven.take(events.Lapsed(), at(1))
    assert driven.machine.belief.leases == ()
    driven.advance(at(3))
    [request] = driven.asked()
    assert isinstance(request, LeaseRequest)
    assert request.held == ()


def test_another_journal_ends_everything() -> None:
    """P22."""
    driven = renewing()
    driven.take(ManagerLost("a"))
    driven.hear(introduction(driven, journal=8))
    assert driven.machine.belief.leases == ()
    assert any(isinstance(message, Join) for message in driven.asked())


def test_what_is_recalled_is_given_up_when_its_callback_is_done() -> None:
    """P10."""
    driven = recalled()
    assert driven.machine.belief.leases == ()
    assert driven.machine.belief.held() == (Held(start=b"", end=None, number=5),)
    driven.take(events.Revoked(1), at(4))
    [request] = driven.asked()
    assert isinstance(request, LeaseRequest)
    assert request.held == ()


def test_silence_is_followed_by_a_search() -> None:
    """P24: after a renewal's time, long before the term ends."""
    driven = renewing()
    while Hello not in [type(message) for message in driven.asked()]:
        driven.advance(driven.wake_at)
    assert at(6) <= driven.now < at(8)


# --- a term that runs out -------------------------------------------------------------------------


def test_who_lapses_asks_at_once_for_new_leases() -> None:
    """If it waited for the next renewal, nobody would serve those ranges until then."""
    driven = holding()
    driven.take(events.Lapsed(), at(1))
    [request] = driven.asked()
    assert isinstance(request, LeaseRequest)
    assert request.held == ()


def test_who_lapses_while_a_request_is_under_way_asks_again_when_that_is_answered() -> None:
    driven = renewing()
    driven.take(events.Lapsed(), at(3.5))
    assert driven.asked() == []
    driven.hear(response(driven, whole()), at(3.5))
    assert driven.machine.belief.leases == ()
    [request] = driven.asked()
    assert isinstance(request, LeaseRequest)
    assert request.held == ()


# --- what it says of silence ----------------------------------------------------------------------


def told(driven: Driven) -> list[tuple[int, str]]:
    """Level and detail of all that it notes."""
    notes = [each for each in driven.actions if isinstance(each, Noted)]
    return [(each.kind.level, each.detail) for each in notes]


def test_who_is_not_answered_says_so_at_half_the_term_at_its_end_and_on_return() -> None:
    driven = holding()
    driven.advance(Instant(TERM_NS // 2))
    unheard = "is not renewed: no manager has answered for 6.0 s, and it loses 1 range in 6.0 s"
    assert told(driven) == [(Level.WARNING, unheard)]
    driven.advance(Instant(TERM_NS // 2 + 1))
    assert told(driven) == [], "once"
    driven.advance(Instant(TERM_NS))
    lapsed = "its term has run out, because no manager has answered for 12.0 s"
    assert told(driven) == [(Level.WARNING, f"no longer holds its 1 range: {lapsed}")]
    driven.advance(at(14))
    driven.hear(response(driven))
    assert told(driven) == [(Level.WARNING, "is renewed again, after 14.0 s")]
    driven.advance(at(17))
    driven.hear(response(driven))
    assert told(driven) == [], "it is renewed in time"


def test_who_is_answered_in_time_says_nothing() -> None:
    driven = holding()
    for now in range(3, 60, 3):
        driven.advance(at(now))
        driven.hear(response(driven, whole()))
        assert told(driven) == []


def test_a_lapse_by_the_watchdog_says_so() -> None:
    driven = Driven(watchdog_ns=seconds(2))
    driven.hear(introduction(driven))
    driven.hear(response(driven))
    driven.hear(response(driven, whole("granted")))
    driven.advance(Instant(TERM_NS))
    [(level, words)] = told(driven)
    why = "the watchdog has not seen the application live for 12.0 s"
    assert (level, words) == (
        Level.WARNING,
        f"no longer holds its 1 range: its term has run out, because {why}",
    )


# --- leaving --------------------------------------------------------------------------------------


def test_who_closes_lists_what_is_being_let_go_and_says_that_it_leaves() -> None:
    [request] = letting_go().asked()
    assert isinstance(request, LeaseRequest)
    assert (request.held, request.leaving) == ((Held(start=b"", end=None, number=5),), True)


def test_who_closes_takes_nothing_new() -> None:
    driven = letting_go()
    driven.hear(
        response(driven, whole(), Leased(start=b"", end=None, number=8, since=8, mark="granted"))
    )
    assert driven.machine.belief.leases == ()
    assert not any(isinstance(action, events.Grant) for action in driven.actions)


def test_who_is_told_that_nothing_is_listed_is_not_gone_before_its_callbacks_are_done() -> None:
    """The deadline has passed: there is nothing to list, but something to finish."""
    driven = letting_go()
    driven.hear(response(driven))
    assert driven.machine.phase == "closing"
    driven.advance(at(3))
    [request] = driven.asked()
    assert isinstance(request, LeaseRequest)
    assert (request.held, request.leaving) == ((), False)
    driven.hear(response(driven))
    driven.take(events.Revoked(1))
    [request] = driven.asked()
    assert isinstance(request, LeaseRequest)
    assert request.leaving


def test_who_was_never_numbered_has_nothing_to_say_goodbye_for() -> None:
    driven = joining()
    driven.take(events.CloseRequested())
    assert driven.actions == [events.Closed()]


def test_who_is_closed_wants_nothing() -> None:
    assert closed().wake_at == FAR_FUTURE


# --- time -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", PHASES)
def test_a_spurious_advance_changes_nothing(phase: Callable[[], Driven]) -> None:
    driven = phase()
    wake_at = driven.wake_at
    if wake_at > driven.now:
        for fraction in (0, 0.5, 0.9):
            left = min(wake_at, at(60)) - driven.now
            driven.advance(Instant(driven.now + round(left * fraction)))
            assert (driven.actions, driven.wake_at) == ([], wake_at)


@pytest.mark.parametrize("phase", PHASES)
def test_a_late_advance_does_what_is_due_once(phase: Callable[[], Driven]) -> None:
    driven = phase()
    driven.advance(at(3600))
    assert driven.machine.belief.leases == ()
    assert len(driven.asked()) <= 3
    driven.advance(at(3600))
    assert driven.actions == []
