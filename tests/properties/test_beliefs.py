"""An owner's belief against a naive one that goes through the keys one by one."""

from hypothesis import given
from hypothesis import strategies as st

from tenure.base.instants import Instant
from tenure.base.ranges import KeyRange
from tenure.protocol.lease.messages import Held, Leased, Mark
from tenure.protocol.lease.owner.belief import Belief
from tenure.protocol.lease.owner.events import Grant, Hold, OwnerAction, Revoke
from tenure.wire.checks import check_in_order
from tests.properties.spaces import KEYS, keys_in

MARKS: tuple[Mark, ...] = ("renewed", "granted", "recalled")


@st.composite
def answers(draw: st.DrawFn) -> tuple[Leased, ...]:
    """Ranges in order, not overlapping, of any mark and number."""
    cuts = sorted(draw(st.sets(st.integers(0, len(KEYS) - 1), max_size=6)))
    ends = [KEYS[i] for i in cuts[1:]]
    pieces = zip([KEYS[i] for i in cuts], [*ends, None], strict=False)
    return tuple(
        Leased(
            start=start,
            end=end,
            number=number,
            since=draw(st.integers(1, number)),
            mark=draw(st.sampled_from(MARKS)),
        )
        for start, end in pieces
        if draw(st.booleans())
        for number in [draw(st.integers(1, 9))]
    )


class Naive:
    """The number under which each key is believed, and the number under which it is
    being given up.
    """

    def __init__(self) -> None:
        self.believed: dict[bytes, int] = {}
        self.giving_up: dict[int, dict[bytes, int]] = {}
        self.highest = 0
        self.revocations = 0

    def take(self, answer: tuple[Leased, ...]) -> None:
        listed = {key: lease for lease in answer for key in keys_in(lease.range)}
        new: dict[bytes, int] = {}
        for lease in answer:
            keys = keys_in(lease.range)
            if lease.mark == "granted" and lease.number > self.highest:
                new |= dict.fromkeys(keys, lease.number)
            elif lease.mark == "renewed":
                held = (key for key in keys if self.believed.get(key) == lease.number)
                new |= dict.fromkeys(held, lease.number)
        self.highest = max([self.highest, *(lease.number for lease in answer)])
        for revocation, keys_of in self.giving_up.items():
            self.giving_up[revocation] = {
                key: number
                for key, number in keys_of.items()
                if key in listed and listed[key].number == number
            }
        dropped = {key: n for key, n in self.believed.items() if new.get(key) != n}
        if dropped:
            self.revocations += 1
            self.giving_up[self.revocations] = {
                key: number
                for key, number in dropped.items()
                if key in listed and listed[key].mark == "recalled"
            }
        self.believed = new

    def drop_all(self) -> None:
        self.giving_up = {revocation: {} for revocation in self.giving_up}
        if self.believed:
            self.revocations += 1
            self.giving_up[self.revocations] = {}
        self.believed = {}

    def let_go(self, revocation: int) -> None:
        self.giving_up.pop(revocation, None)

    def listed(self) -> list[tuple[bytes, int]]:
        """Return what it lists, with repetitions: a range that a later grant covers is listed under
        both numbers.
        """
        pairs = list(self.believed.items())
        for keys_of in self.giving_up.values():
            pairs += keys_of.items()
        return sorted(pairs)


def by_key(items: tuple[Leased, ...] | tuple[Held, ...]) -> list[tuple[bytes, int]]:
    return sorted((key, item.number) for item in items for key in keys_in(item.range))


def told(actions: list[OwnerAction]) -> tuple[set[bytes], set[bytes]]:
    """The keys that the application is told it has lost, and those that it has got."""
    lost = [k for a in actions if isinstance(a, Revoke) for x in a.leases for k in keys_in(x.range)]
    got = [k for a in actions if isinstance(a, Grant) for x in a.leases for k in keys_in(x.range)]
    assert len(lost) == len(set(lost))
    return set(lost), set(got)


@given(st.lists(st.one_of(answers(), st.integers(0, 4)), max_size=12))
def test_a_belief_is_what_answers_make_of_it(story: list[tuple[Leased, ...] | int]) -> None:
    """An answer; or, for a number, the callback of that revocation is done; 0: the term ran out."""
    belief, naive = Belief(), Naive()
    belief.incarnation = 1
    for step in story:
        before = dict(naive.believed)
        actions: list[OwnerAction] = []
        if isinstance(step, tuple):
            actions = belief.take(step)
            naive.take(step)
            actions += belief.move_expiry(Instant(0), Instant(1))
        elif step == 0:
            actions = belief.drop_all()
            naive.drop_all()
        else:
            belief.let_go(step)
            naive.let_go(step)
        belief.invariants()
        assert by_key(belief.leases) == sorted(naive.believed.items())
        assert by_key(belief.held()) == naive.listed()
        check_in_order(belief.held())  # otherwise its manager would refuse its requests
        lost, got = told(actions)
        assert lost == {k for k, n in before.items() if naive.believed.get(k) != n}
        assert got == {k for k, n in naive.believed.items() if before.get(k) != n}
        holds = [action for action in actions if isinstance(action, Hold)]
        assert all(hold.holdings.leases == belief.leases for hold in holds[-1:])


@given(answers(), answers())
def test_nothing_that_ran_out_comes_back(
    one: tuple[Leased, ...], other: tuple[Leased, ...]
) -> None:
    """P5, P6, S3: whatever the next answer says, it holds under higher numbers only."""
    belief = Belief()
    belief.incarnation = 1
    belief.take(one)
    had = max([lease.number for lease in one], default=0)
    belief.drop_all()
    belief.take(other)
    assert all(lease.number > had for lease in belief.leases)


@given(answers())
def test_the_end_of_the_term_is_the_end_of_everything(answer: tuple[Leased, ...]) -> None:
    belief = Belief()
    belief.incarnation = 1
    belief.take(answer)
    belief.move_expiry(Instant(0), Instant(10))
    assert belief.expires_at == Instant(10)
    belief.drop_all()
    assert (belief.leases, belief.held()) == ((), ())


def test_the_space_of_these_tests_is_in_order() -> None:
    assert list(KEYS) == sorted(set(KEYS))
    assert keys_in(KeyRange()) == list(KEYS)
