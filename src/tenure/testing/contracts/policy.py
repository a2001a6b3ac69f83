"""What every policy must do, as tests.

Subclass `PolicyContract` in your test suite, and give it a fixture `policy`:

    class TestMyPolicy(PolicyContract):
        @pytest.fixture
        def policy(self):
            return MyPolicy()

A policy is a function of its situation: things that differ from run to run, such as the hash seed
of a process, must not show in its plans. It takes two processes to see that; compare their
`situations.digest`.
"""

from random import Random

from tenure.base.instants import FAR_FUTURE, Instant, seconds
from tenure.base.keys import Key
from tenure.base.rangemap import RangeMap
from tenure.protocol.balance.load import Loads, share_of
from tenure.protocol.balance.picture import LoadPicture, Measurement, RangeRate
from tenure.protocol.balance.policy import NOBODY, Pin, Policy, Situation, changes, in_time, only
from tenure.testing.contracts.situations import (
    CAPACITIES,
    EMPTY,
    HOUR,
    MINUTE,
    SIZES,
    adversarial,
    candidates,
    carried_out,
    counted,
    incarnations,
    moved_from,
    situations,
    skewed,
    uses,
)


class PolicyContract:
    """Tests that a policy must pass; see the module's docstring."""

    bursts_move_at_most = 0.25
    """The part of the key space in half an hour of bursts; more of a policy that has no budget."""

    hostile_loads_move_at_most = 0.1
    """The part of the key space in nine minutes; more of a policy that has no budget."""

    drift_moves_at_most = 0.2
    """The part of the key space in an hour in which hot keys come and go; as before."""

    drift_grows_at_most = 1.1
    """How much longer the table is on the second such day than on the first."""

    def test_every_key_has_a_candidate(self, policy: Policy) -> None:
        for situation in situations(policy):
            having = set(policy(situation).owners.values())
            is_closed = all(each.cordoned for each in situation.candidates)
            nobody = {NOBODY} if is_closed else set[int]()
            assert having <= incarnations(situation.candidates) | nobody, situation

    def test_without_candidates_nobody_has_anything(self, policy: Policy) -> None:
        table = carried_out(policy(Situation(candidates(3), EMPTY)))
        for present in (EMPTY, table):
            plan = policy(Situation([], present, pins=[Pin(b"a", "owner-1")]))
            assert plan.owners == RangeMap(NOBODY)

    def test_where_nothing_is_asked_for_nothing_moves(self, policy: Policy) -> None:
        for count in SIZES:
            members = candidates(count)
            plan = policy(Situation(members, EMPTY))
            table = carried_out(plan)
            loads = Loads(Instant(0), table.starts(), [0.0] * len(table), [])
            now = Instant(seconds(100))
            idle = policy(Situation(members, table, now, loads, memory=plan.memory))
            assert not moved_from(table, idle)

    def test_everybody_is_given_something(self, policy: Policy) -> None:
        for count in SIZES:
            members = candidates(count)
            plan = policy(Situation(members, EMPTY))
            assert set(plan.owners.values()) == incarnations(members)

    def test_the_same_situation_has_the_same_plan(self, policy: Policy) -> None:
        for situation in situations(policy):
            again = situation._replace(candidates=situation.candidates[::-1])
            assert policy(situation) == policy(again), situation

    def test_what_it_is_given_stays_as_it_is(self, policy: Policy) -> None:
        for situation in situations(policy):
            present, members = situation.present.copy(), list(situation.candidates)
            loads = situation.loads and [list(column) for column in situation.loads[1:]]
            policy(situation)
            assert situation.present == present
            assert situation.candidates == members
            assert loads == (situation.loads and [list(column) for column in situation.loads[1:]])

    def test_a_plan_that_was_carried_out_is_kept(self, policy: Policy) -> None:
        for count in SIZES:
            plan = policy(Situation(candidates(count), EMPTY))
            table = carried_out(plan)
            for memory in (plan.memory, None, object()):
                now = Instant(seconds(100))
                again = policy(Situation(candidates(count), table, now, memory=memory))
                assert again.owners == plan.owners

    def test_a_plan_that_is_not_carried_out_yet_is_kept(self, policy: Policy) -> None:
        """Otherwise a range would be recalled for one owner, and granted to another."""
        for situation in situations(policy):
            if situation.loads is not None:
                continue  # which may be reason enough to plan on
            plan = policy(situation)
            later = situation._replace(memory=plan.memory)
            assert policy(later).owners == plan.owners

    def test_who_comes_is_given_its_part_and_nothing_else_moves(self, policy: Policy) -> None:
        for count in SIZES:
            plan = policy(Situation(candidates(count), EMPTY))
            table = carried_out(plan)
            for memory in (plan.memory, None):
                now = Instant(seconds(100))
                comes = Situation(candidates(count + 1), table, now, memory=memory)
                with_it = in_time(policy, comes)
                takers = {taker for _, taker in moved_from(table, with_it)}
                assert takers == {count + 1}

    def test_it_wants_to_be_asked_again_later_and_not_for_ever(self, policy: Policy) -> None:
        for situation in situations(policy):
            assert policy(situation).again_at > situation.now, situation
            assert in_time(policy, situation).again_at == FAR_FUTURE, situation

    def test_who_goes_leaves_its_part_and_nothing_else_moves(self, policy: Policy) -> None:
        for count in SIZES[1:]:
            plan = policy(Situation(candidates(count), EMPTY))
            table = carried_out(plan)
            for memory in (plan.memory, None):
                without = policy(Situation(candidates(count)[1:], table, memory=memory))
                givers = {giver for giver, _ in moved_from(table, without)}
                assert givers == {1}

    def test_a_pinned_key_is_at_its_owner_and_no_other_key_is(self, policy: Policy) -> None:
        members = candidates(5)
        plan = policy(Situation(members, EMPTY))
        table = carried_out(plan)
        for member in members:
            key: Key = b"\x42" * 8
            pin = Pin(key, member.name)
            pinned = policy(Situation(members, table, memory=plan.memory, pins=[pin]))
            assert pinned.owners[key] == member.incarnation
            for key_range, owner in plan.owners:
                for piece, now in pinned.owners.within(key_range):
                    assert now == owner or piece == only(key)

    def test_a_pin_to_nobody_is_passed_over(self, policy: Policy) -> None:
        situation = Situation(candidates(5), EMPTY)
        pinned = situation._replace(pins=[Pin(b"\x42" * 8, "stranger")])
        assert policy(pinned).owners == policy(situation).owners

    def test_in_a_frozen_pool_moves_only_what_has_no_owner(self, policy: Policy) -> None:
        for count in SIZES[1:]:
            plan = policy(Situation(candidates(count), EMPTY))
            table = carried_out(plan)
            members = [*candidates(count)[1:], *candidates(2, first=100)]
            for memory in (plan.memory, None):
                loads = skewed(table, count)
                frozen = Situation(members, table, memory=memory, loads=loads, frozen=True)
                assert {giver for giver, _ in moved_from(table, policy(frozen))} == {1}

    def test_what_was_on_its_way_stays_in_a_frozen_pool(self, policy: Policy) -> None:
        for count in SIZES:
            table = carried_out(policy(Situation(candidates(count), EMPTY)))
            coming = Situation(candidates(count + 1), table)
            plan = in_time(policy, coming)
            assert moved_from(table, plan)
            frozen = policy(coming._replace(memory=plan.memory, frozen=True))
            assert not moved_from(table, frozen)

    def test_what_was_on_its_way_to_one_that_is_gone_stays(self, policy: Policy) -> None:
        for count in SIZES:
            table = carried_out(policy(Situation(candidates(count), EMPTY)))
            plan = in_time(policy, Situation(candidates(count + 1), table))
            without = policy(Situation(candidates(count), table, memory=plan.memory))
            assert not moved_from(table, without)

    def test_what_it_may_not_do_is_told(self, policy: Policy) -> None:
        situation = Situation(candidates(3), EMPTY, pins=[Pin(b"a", "owner-9")], frozen=True)
        told = [tuple(each) for each in policy(situation).held_back]
        assert ("balance", "the pool is frozen") in told
        assert ("the pin of b'a' to owner-9", "no candidate has that name") in told

    def test_a_cordoned_owner_keeps_what_it_has_and_gets_nothing_new(self, policy: Policy) -> None:
        for count in SIZES[1:]:
            plan = policy(Situation(candidates(count), EMPTY))
            table = carried_out(plan)
            first, *others = [*candidates(count)[:-1], *candidates(2, first=100)]
            members = [first._replace(cordoned=True), *others]
            for memory in (plan.memory, None):
                loads = skewed(table, count)
                for frozen in (False, True):
                    cordoned = Situation(members, table, memory=memory, loads=loads, frozen=frozen)
                    having = policy(cordoned).owners
                    assert set(having.values()) <= incarnations(members)
                    for key_range, right in table:
                        for _, owner in having.within(key_range):
                            assert (owner == 1) == (right.owner == 1)

    def test_what_was_on_its_way_to_a_cordoned_owner_stays(self, policy: Policy) -> None:
        for count in SIZES:
            table = carried_out(policy(Situation(candidates(count), EMPTY)))
            *present, newcomer = candidates(count + 1)
            plan = in_time(policy, Situation([*present, newcomer], table))
            members = [*present, newcomer._replace(cordoned=True)]
            cordoned = policy(Situation(members, table, memory=plan.memory))
            assert newcomer.incarnation not in cordoned.owners.values()

    def test_where_all_are_cordoned_nothing_moves(self, policy: Policy) -> None:
        for count in SIZES:
            table = carried_out(policy(Situation(candidates(count), EMPTY)))
            members = [each._replace(cordoned=True) for each in candidates(count)[1:]]
            for loads in (None, skewed(table, count)):
                plan = policy(Situation(members, table, loads=loads))
                for key_range, right in table:
                    kept = NOBODY if right.owner == 1 else right.owner
                    assert {owner for _, owner in plan.owners.within(key_range)} == {kept}

    def test_a_cordoned_owner_has_what_is_pinned_to_it(self, policy: Policy) -> None:
        key: Key = b"\x42" * 8
        members = [candidates(1)[0]._replace(cordoned=True), *candidates(2, first=2)]
        plan = policy(Situation(members, EMPTY, pins=[Pin(key, "owner-1")]))
        assert [owner for _, owner in plan.owners].count(1) == 1
        assert plan.owners[key] == 1

    def test_every_change_has_a_reason(self, policy: Policy) -> None:
        for situation in situations(policy):
            for change in changes(situation.present, policy(situation)):
                assert change.why is not None, change
                assert change.why.phase
                assert change.why.reason

    def test_what_is_asked_for_by_chance_moves_next_to_nothing(self, policy: Policy) -> None:
        """Five checks a second of each owner, evenly, for five minutes: no owner should be relieved
        because some of them came together.
        """
        dice, members, rate, every, blending = Random(4), candidates(10), 5.0, 3, 12
        plan = policy(Situation(members, EMPTY))
        spaces = dict.fromkeys(incarnations(members), 0.0)
        for key_range, owner in plan.owners:
            spaces[owner] += share_of(key_range)
        rates = [
            (key_range, rate * share_of(key_range) / spaces[owner])
            for key_range, owner in plan.owners
        ]
        picture, moved = LoadPicture(), 0.0
        for i in range(1, 301 // every):
            seen = [
                RangeRate(each.start, each.end, counted(dice, per * every) / every)
                for each, per in rates
            ]
            picture.take(Measurement(seconds(every), seen))
            if i * every < blending:
                continue  # nobody plans before the first reports are blended in
            now, table = Instant(seconds(i * every)), carried_out(plan)
            loads = picture.loads(now)
            plan = policy(Situation(members, table, now, loads, memory=plan.memory))
            moved += sum(share_of(change.range) for change in changes(table, plan))
        assert moved * 100 < 1, f"{moved:.1%} of the key space"

    def test_whatever_load_is_told_every_key_has_a_candidate(self, policy: Policy) -> None:
        """Any float, of ranges and keys, in pools of any capacities: some of it cannot be, and is
        refused on its way here; none of it may end a leader.
        """
        for seed in range(40):
            dice = Random(seed)
            members = [
                member._replace(capacity=dice.choice(CAPACITIES)) for member in candidates(5)
            ]
            plan = policy(Situation(members, EMPTY))
            for i in range(1, 6):
                table = carried_out(plan)
                loads = adversarial(table, dice)
                now = Instant(seconds(30 * i))
                plan = policy(Situation(members, table, now, loads, memory=plan.memory))
                assert set(plan.owners.values()) <= incarnations(members)

    def test_owners_of_any_capacity_are_relieved_of_what_is_too_much_for_them(
        self, policy: Policy
    ) -> None:
        """Nobody carries more for its capacity than before, and it is not the weakest for ever."""
        for capacities in ((1, 8, 8), (8, 1, 1, 1)):
            members = [
                member._replace(capacity=float(capacity))
                for member, capacity in zip(candidates(len(capacities)), capacities, strict=True)
            ]
            plan = policy(Situation(members, EMPTY))
            even = Loads(Instant(0), [b""], [10_000.0], [])
            first = max(uses(members, plan, even))
            for i in range(1, 100):
                table, now = carried_out(plan), Instant(seconds(30 * i))
                plan = policy(Situation(members, table, now, even, memory=plan.memory))
            assert max(uses(members, plan, even)) <= max(first, 1.1)

    def test_what_bursts_move_is_bounded(self, policy: Policy) -> None:
        """A pool of ten is asked for a thousand times a second, and every other minute for one key
        as often as for six of its owners together, another key each time: half an hour of it.
        """
        dice, members, picture = Random(7), candidates(10), LoadPicture()
        plan, moved, every = policy(Situation(members, EMPTY)), 0.0, 3
        hot: Key = b""
        for second in range(every, 30 * MINUTE, every):
            if second % (2 * MINUTE) == every:
                hot = dice.randbytes(8)
            table, now = carried_out(plan), Instant(seconds(second))
            rate = 600.0 if second % (2 * MINUTE) <= MINUTE else 0.0
            told = [
                RangeRate(each.start, each.end, 1000 * share_of(each) + rate * (hot in each))
                for each, _ in table
            ]
            picture.take(Measurement(seconds(every), told, [(hot, rate)] if rate else []))
            plan = policy(Situation(members, table, now, picture.loads(now), memory=plan.memory))
            moved += sum(share_of(change.range) for change in changes(table, plan))
        assert moved <= self.bursts_move_at_most, f"{moved:.0%} of the key space"

    def test_what_hostile_loads_move_is_bounded(self, policy: Policy) -> None:
        """A pool of ten was asked for evenly for a while, and saved up whatever budget there is.
        Then every 30 seconds whole ranges of three other owners are asked for, and nothing else.
        """
        dice, members, picture = Random(9), candidates(10), LoadPicture()
        plan, moved, every = policy(Situation(members, EMPTY)), 0.0, 3
        begins_at = 45 * MINUTE
        hot: set[int] = set()
        for second in range(every, begins_at + 9 * MINUTE, every):
            is_hostile = second >= begins_at
            if is_hostile and second % 30 == 0:
                hot = set(dice.sample(sorted(incarnations(members)), 3))
            table, now = carried_out(plan), Instant(seconds(second))
            told = [
                RangeRate(
                    each.start,
                    each.end,
                    5000 * share_of(each) * (not is_hostile or right.owner in hot),
                )
                for each, right in table
            ]
            picture.take(Measurement(seconds(every), told, []))
            plan = policy(Situation(members, table, now, picture.loads(now), memory=plan.memory))
            if is_hostile:
                moved += sum(share_of(change.range) for change in changes(table, plan))
        assert moved <= self.hostile_loads_move_at_most, f"{moved:.0%} of the key space"

    def test_hot_keys_that_come_and_go_for_days_leave_nothing_behind(self, policy: Policy) -> None:
        """A pool of four, of which every half hour another key is asked for more than a third of
        what one owner carries. On the second day the table is as long as on the first.
        """
        dice, members, picture = Random(11), candidates(4), LoadPicture()
        plan, moved, every = policy(Situation(members, EMPTY)), 0.0, 5 * MINUTE
        hot: Key = b""
        lengths: list[int] = []
        for second in range(every, 48 * HOUR, every):
            if second % (30 * MINUTE) == every:
                hot = dice.randbytes(8)
            table, now = carried_out(plan), Instant(seconds(second))
            lengths.append(len(table))
            told = [
                RangeRate(each.start, each.end, 1000 * share_of(each) + 100.0 * (hot in each))
                for each, _ in table
            ]
            picture.take(Measurement(seconds(every), told, [(hot, 100.0)]))
            plan = policy(Situation(members, table, now, picture.loads(now), memory=plan.memory))
            moved += sum(share_of(change.range) for change in changes(table, plan))
        first, second_day = lengths[: len(lengths) // 2], lengths[len(lengths) // 2 :]
        growth = max(second_day) / max(first)
        assert growth <= self.drift_grows_at_most, f"{growth:.2f} times as long"
        assert moved / 48 <= self.drift_moves_at_most, f"{moved / 48:.1%} of the key space an hour"
