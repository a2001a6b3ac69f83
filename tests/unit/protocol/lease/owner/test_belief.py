"""An owner's belief: it drops first, renews only what it holds, and never revives what
has expired.
"""

import pytest

from tenure.base.instants import Instant
from tenure.base.ranges import KeyRange
from tenure.protocol.lease.messages import Held, Leased, Mark
from tenure.protocol.lease.owner.belief import Belief
from tenure.protocol.lease.owner.events import Grant, Hold, Overtaken, OwnerAction, Revoke


def lease(
    start: bytes, end: bytes | None, number: int, mark: Mark = "renewed", since: int = 1
) -> Leased:
    return Leased(start=start, end=end, number=number, since=since, mark=mark)


def holding(*leases: Leased) -> Belief:
    """A numbered owner that was granted these, until 100."""
    belief = Belief()
    belief.incarnation = 1
    belief.take(tuple(lease(x.start, x.end, x.number, "granted") for x in leases))
    belief.move_expiry(Instant(0), Instant(100))
    assert belief.leases == leases
    return belief


def revoked(actions: list[OwnerAction]) -> list[Leased]:
    return [x for action in actions if isinstance(action, Revoke) for x in action.leases]


A, B = lease(b"", b"m", 5), lease(b"m", None, 6)


# --- answers --------------------------------------------------------------------------------------


def test_what_is_granted_is_believed_and_told() -> None:
    belief = Belief()
    belief.incarnation = 1
    granted = lease(b"", b"m", 5, "granted")
    belief.take((granted,))
    [hold, told] = belief.move_expiry(Instant(0), Instant(100))
    assert (belief.leases, told) == ((A,), Grant((granted,)))
    assert isinstance(hold, Hold)  # first: a callback that is told finds it held
    assert hold.holdings.leases == (A,)


def test_what_is_renewed_and_not_held_is_not_believed() -> None:
    """P5: it ran out while the answer was on its way."""
    belief = holding(A)
    belief.drop_all()
    assert (belief.take((A,)), belief.leases) == ([], ())


def test_what_is_renewed_under_another_number_is_dropped() -> None:
    belief = holding(A)
    assert revoked(belief.take((lease(b"", b"m", 7),))) == [A]
    assert belief.leases == ()


def test_what_is_not_listed_is_dropped_before_it_is_told() -> None:
    """P4: check must be None by the time that anybody hears of it."""
    belief = holding(A, B)
    actions = belief.take((A,))
    assert [type(action) for action in actions] == [Hold, Revoke]
    assert isinstance(actions[0], Hold)
    assert actions[0].holdings.leases == (A,)
    assert revoked(actions) == [B]


def test_a_number_that_was_seen_is_not_granted_again() -> None:
    """P5: a grant has a number never used before; an old one is an old answer's."""
    belief = holding(A)
    belief.drop_all()
    belief.take((lease(b"", b"m", 5, "granted"),))
    assert belief.leases == ()


def test_a_range_that_is_split_goes_on_under_its_number() -> None:
    """P11."""
    belief = holding(lease(b"", None, 5))
    actions = belief.take((lease(b"", b"c", 5), lease(b"h", None, 5)))
    assert revoked(actions) == [lease(b"c", b"h", 5)]
    assert belief.leases == (lease(b"", b"c", 5), lease(b"h", None, 5))


def test_neighbours_merge_where_number_and_since_agree() -> None:
    """P11: as in the table, so that a request lists what the table says."""
    belief = Belief()
    belief.incarnation = 1
    granted = [
        lease(b"", b"c", 5, "granted"),
        lease(b"c", b"h", 5, "granted"),
        lease(b"h", b"m", 5, "granted", since=2),
        lease(b"m", None, 6, "granted", since=2),
    ]
    belief.take(tuple(granted))
    assert belief.held() == (
        Held(start=b"", end=b"h", number=5),
        Held(start=b"h", end=b"m", number=5),
        Held(start=b"m", end=None, number=6),
    )


def test_the_same_answer_again_changes_nothing() -> None:
    belief = holding(A, B)
    assert belief.take((A, B)) == []


def test_an_answer_that_comes_too_late_ends_everything() -> None:
    belief = holding(A)
    belief.take((A,))
    actions = belief.move_expiry(Instant(90), Instant(90))
    assert (revoked(actions), belief.leases) == ([A], ())


# --- handing over ---------------------------------------------------------------------------------


def test_what_is_handed_over_is_neither_believed_nor_listed() -> None:
    """P13: its copy says what becomes of it. Readers see that before anybody is told."""
    belief = holding(lease(b"", None, 5))
    hold = belief.hand_over(KeyRange(b"c", b"h"))
    assert isinstance(hold, Hold)
    assert hold.holdings.leases == (lease(b"", b"c", 5), lease(b"h", None, 5))
    assert belief.held() == (
        Held(start=b"", end=b"c", number=5),
        Held(start=b"h", end=None, number=5),
    )
    assert belief.has_let_go(KeyRange(b"d", b"e")), "no callback was called"


def test_a_renewal_from_before_the_hand_over_goes_for_the_rest() -> None:
    """It was asked for when all was held; nothing that was handed over comes back, and nothing
    that stayed is lost with it.
    """
    belief = holding(lease(b"", None, 5))
    belief.hand_over(KeyRange(b"m", None))
    assert revoked(belief.take((lease(b"", None, 5),))) == []
    assert belief.leases == (A,)


def test_all_of_a_range_is_held_or_it_is_not() -> None:
    belief = holding(A, B)
    asked = [(A.range, 5), (A.range, 6), (KeyRange(b"c", b"d"), 5), (KeyRange(b"c", b"z"), 5)]
    assert [belief.holds(*each) for each in asked] == [True, False, True, False]


def test_the_application_has_let_go_when_it_says_so() -> None:
    belief = holding(A, B)
    [_, revoke] = belief.take((A,))
    assert isinstance(revoke, Revoke)
    forgetting = belief.begin_to_forget(KeyRange(b"", b"c"))
    seen = [belief.has_let_go(KeyRange(*ends)) for ends in ((b"a", b"d"), (b"d", b"m"), (b"x",))]
    belief.let_go(forgetting)
    belief.let_go(revoke.revocation)
    assert (seen, belief.has_let_go(KeyRange())) == ([False, True, False], True)


# --- letting go -----------------------------------------------------------------------------------


def test_what_is_recalled_is_not_believed_but_listed_until_it_is_let_go() -> None:
    """P10."""
    belief = holding(A, B)
    [_, revoke] = belief.take((A, lease(b"m", None, 6, "recalled")))
    assert isinstance(revoke, Revoke)
    assert revoke.kept == (B.range,)
    assert (belief.leases, belief.held()) == (
        (A,),
        (Held(start=b"", end=b"m", number=5), Held(start=b"m", end=None, number=6)),
    )
    assert belief.let_go(revoke.revocation)
    assert belief.held() == (Held(start=b"", end=b"m", number=5),)


def test_what_was_recalled_and_is_not_listed_any_more_is_not_listed_either() -> None:
    """P10: its deadline passed, the callback still runs."""
    belief = holding(A, B)
    [_, revoke] = belief.take((A, lease(b"m", None, 6, "recalled")))
    assert isinstance(revoke, Revoke)
    assert Overtaken(revoke.revocation, (B.range,)) in belief.take((A,))
    assert not [each for each in belief.take((A,)) if isinstance(each, Overtaken)], "once"
    assert (belief.held(), belief.is_giving_up) == ((Held(start=b"", end=b"m", number=5),), True)
    assert not belief.let_go(revoke.revocation)
    assert not belief.is_giving_up


def test_a_recall_that_is_repeated_is_told_once() -> None:
    belief = holding(A, B)
    again = (A, lease(b"m", None, 6, "recalled"))
    belief.take(again)
    assert revoked(belief.take(again)) == []


def test_what_is_dropped_without_a_recall_is_not_listed() -> None:
    """It is not the manager's any more: another may have it."""
    belief = holding(A, B)
    belief.take((A,))
    assert belief.held() == (Held(start=b"", end=b"m", number=5),)


def test_what_is_given_up_is_listed_until_it_is_let_go() -> None:
    belief = holding(A, B)
    actions = belief.give_up_all()
    assert revoked(actions) == [A, B]
    assert (belief.leases, len(belief.held())) == ((), 2)


def test_a_renewal_of_what_is_being_given_up_is_no_way_back() -> None:
    """S3: the next leader does not know of the recall, and renews what is listed."""
    belief = holding(A)
    belief.take((lease(b"", b"m", 5, "recalled"),))
    belief.take((A,))
    assert (belief.leases, belief.held()) == ((), (Held(start=b"", end=b"m", number=5),))


def test_what_ran_out_is_not_listed_although_its_callback_runs() -> None:
    """P5, P6."""
    belief = holding(A)
    belief.take((lease(b"", b"m", 5, "recalled"),))
    assert belief.drop_all() == [Overtaken(1, (A.range,))]
    assert (belief.held(), belief.is_giving_up) == ((), True)


@pytest.mark.parametrize("revocation", [0, 1, 99])
def test_letting_go_of_what_is_not_being_given_up_is_nothing(revocation: int) -> None:
    assert not holding(A).let_go(revocation)


def test_a_revocation_says_by_when_its_callback_must_be_done() -> None:
    [revoke] = [a for a in holding(A).give_up_all() if isinstance(a, Revoke)]
    assert revoke.deadline == 100


def test_another_journal_begins_its_numbers_anew() -> None:
    """P22."""
    belief = holding(A)
    belief.drop_all()
    belief.begin_anew(8)
    belief.take((lease(b"", b"m", 2, "granted"),))
    assert belief.leases == (lease(b"", b"m", 2),)


def test_another_journal_is_not_begun_while_anything_is_believed() -> None:
    with pytest.raises(AssertionError):
        holding(A).begin_anew(8)


def test_what_is_not_let_go_of_is_told_until_it_is() -> None:
    """Or the manager would grant it again and again, in vain; and it is to hear of the end."""
    belief = holding(A, B)
    assert belief.letting_go() == ()
    belief.drop_all()
    assert belief.letting_go() == (Held(start=b"", end=None, number=0),)
    assert belief.let_go(1)
    assert belief.letting_go() == ()
