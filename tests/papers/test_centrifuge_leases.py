"""Centrifuge 2.3: what the paper claims of leases, clocks and messages, one test each."""

from collections.abc import Iterator

import pytest

from tenure.base.instants import SECOND_NS
from tenure.base.ranges import KeyRange
from tenure.protocol.lease.leader.session import Session
from tenure.protocol.lease.messages import (
    Join,
    LeaseRequest,
    LeaseResponse,
    Poke,
    Refusal,
    ShortRequest,
)
from tenure.protocol.lease.timing import PAPER
from tests.papers.stage import Letter, OwnerActor, Stage, assigned, ring

KEY = b"k"
HIGH = KeyRange(b"m", None)
HOLD_SECONDS = PAPER.hold_ns / SECOND_NS

split_in_two = assigned(
    lambda names: ((b"", names[0] if names else None), (b"m", names[-1] if names else None))
)


def session_of(stage: Stage, owner: OwnerActor) -> Session:
    leader = stage.leader.machine.leader
    assert leader is not None
    return leader.pools["pool"].sessions[owner.machine.belief.incarnation]


def next_request(stage: Stage, by: OwnerActor | None = None) -> Letter:
    """The next request of the stage's one owner, or of `by`, on its way."""
    while True:
        for letter in stage.letters:
            if isinstance(letter.message, LeaseRequest | ShortRequest) and by in (
                None,
                letter.sender,
            ):
                stage.letters.remove(letter)
                return letter
        if stage.letters:
            stage.carry(stage.letters.popleft())
        else:
            stage.let_pass(0.5)
            stage.wake()


def requests(stage: Stage, by: OwnerActor) -> list[LeaseRequest | ShortRequest]:
    """Return its requests in their order, whether they list everything that it holds or
    are short.
    """
    found: list[LeaseRequest | ShortRequest] = [*stage.messages(LeaseRequest, by=by)]
    found += stage.messages(ShortRequest, by=by)
    return sorted(found, key=lambda request: request.sequence)


def seconds_of(stage: Stage, duration_seconds: float) -> Iterator[float]:
    """Half a second after the other."""
    for i in range(round(2 * duration_seconds)):
        stage.run(0.5)
        yield i / 2


# --- 2.3: asking and answering ------------------------------------------------------------------


def test_an_owner_is_told_of_its_own_ranges_only() -> None:
    """Centrifuge 2.3: an owner knows the ranges leased to it, and no others."""
    stage = Stage()
    owners = [stage.owner(name) for name in "abc"]
    stage.run()
    for owner in owners:
        incarnation = owner.machine.belief.incarnation
        answer = stage.messages(LeaseResponse, to=owner)[-1]
        ours = [item.range for item in stage.table.held_by(incarnation)]
        assert [lease.range for lease in answer.leases] == ours
        assert 0 < len(ours) < len(stage.table.rights)


def test_an_owner_asks_every_15_seconds() -> None:
    """Centrifuge 2.3: a request each 15 seconds; it shows that the owner lives."""
    stage = Stage()
    a = stage.owner("a")
    stage.run(15)
    before = len(requests(stage, a))
    stage.run(300)
    assert len(requests(stage, a)) - before == 20


def test_three_renewals_in_a_row_may_be_lost() -> None:
    """Centrifuge 2.3: with 60 s leases, a lease survives the loss of three requests running."""
    stage = Stage()
    a = stage.owner("a")
    stage.run(4)
    number, last_sent = a.number(KEY), a.holdings.expires_at - PAPER.term_ns
    stage.cut_off.append(a)
    stage.run(50 - (stage.now - last_sent) / SECOND_NS)  # the requests of 15, 30 and 45 s are lost
    stage.cut_off.clear()
    for _ in seconds_of(stage, 30):
        assert a.number(KEY) == number
    assert a.revoked == []


def test_a_lease_ends_when_no_request_is_answered_for_its_term() -> None:
    """Centrifuge 2.3: what is not renewed expires, at the owner first, then at the manager."""
    stage = Stage()
    a = stage.owner("a")
    stage.run(4)
    number, last_sent = a.number(KEY), a.holdings.expires_at - PAPER.term_ns
    stage.cut_off.append(a)
    stage.run(59.9 - (stage.now - last_sent) / SECOND_NS)
    assert a.number(KEY) == number
    stage.run(0.2)
    assert a.number(KEY) is None
    assert stage.table.rights[KEY].number == number  # the hold still runs
    stage.run(5)
    assert stage.table.rights[KEY].owner == 0


def test_a_lease_that_has_run_out_is_not_prolonged_by_an_answer_that_was_on_its_way() -> None:
    """Centrifuge 2.3.1: the timer decides, also where the answer is handled before it (P6)."""
    stage = Stage()
    a = stage.owner("a")
    stage.run(4)
    number, ends = a.number(KEY), a.holdings.expires_at
    stage.cut_off.append(a)
    stage.run((ends - stage.now) / SECOND_NS - 6)
    stage.cut_off.clear()
    stage.carry(next_request(stage))
    answer = stage.take_out(LeaseResponse)
    stage.let_pass((ends - stage.now) / SECOND_NS + 0.3)
    stage.carry(answer)  # it says "renewed", until 54 s from now
    assert a.number(KEY) is None
    assert len(a.revoked) == 1
    stage.run(PAPER.renew_ns / SECOND_NS)  # it asks again when it would have renewed
    assert (a.number(KEY) or 0) > (number or 0)


def test_a_request_names_what_is_to_be_renewed_and_an_answer_renews_and_grants() -> None:
    """Centrifuge 2.3: the answer tells renewals and grants apart."""
    stage = Stage(make_policy=split_in_two)
    a = stage.owner("a")
    stage.run()
    b = stage.owner("b")
    stage.run()
    a.close()
    stage.run()
    number = b.number(b"z")
    marks = [
        [lease.mark for lease in answer.leases] for answer in stage.messages(LeaseResponse, to=b)
    ]
    assert ["granted", "renewed"] in marks
    request = stage.messages(LeaseRequest, by=b)[-1]
    assert (b"m", None, number) in [(held.start, held.end, held.number) for held in request.held]


def test_a_restarted_owner_takes_up_nothing_of_its_former_life() -> None:
    """Centrifuge 2.3, otherwise: in the paper a restarted owner refuses renewals, which frees them.

    A restart alone proves nothing, so here it frees nothing (P8): two processes may have one name,
    both alive. The predecessor's hold runs out first, and a join under its name waits for that.
    """
    stage = Stage()
    a = stage.owner("a")
    stage.run(4)
    lookup = stage.lookup()
    stage.run(1)
    number = a.number(KEY)
    a.kill()
    again = stage.owner("a")
    stage.run(30)
    assert again.number(KEY) is None
    (reason,) = {refusal.reason for refusal in stage.messages(Refusal, to=again)}
    assert reason == "name_held"
    assert lookup.losses == []
    stage.run(40)
    assert (again.number(KEY) or 0) > (number or 0)
    assert lookup.lost(KEY)


def test_a_restart_under_another_name_joins_at_once() -> None:
    """Centrifuge 2.3, otherwise: by default a name is drawn for each process, so nobody waits."""
    stage = Stage(make_policy=split_in_two)
    a = stage.owner("a-1")
    stage.owner("b")
    stage.run(4)
    a.kill()
    again = stage.owner("c")
    stage.run(4)
    assert again.number(b"z")  # its share of what others had; the dead one's is waited for
    assert again.number(b"a") is None


def test_every_answer_is_the_complete_set() -> None:
    """Centrifuge 2.3: each message lists all that the owner should hold, not what changed."""
    stage = Stage(make_policy=ring)
    a = stage.owner("a")
    stage.run()
    for name in "bcd":
        stage.owner(name)
        stage.run(20)
    answers = stage.messages(LeaseResponse, to=a)
    held = [sum(lease.mark != "recalled" for lease in answer.leases) for answer in answers]
    assert held[-1] == len(a.holdings.leases) > 1
    unchanged = answers[-1].leases
    assert all(lease.mark == "renewed" for lease in unchanged)
    assert len(unchanged) == len(stage.table.held_by(a.machine.belief.incarnation))


# --- 2.3.1: clocks ------------------------------------------------------------------------------


def test_the_manager_holds_for_65_seconds_what_an_owner_counts_on_for_60() -> None:
    """Centrifuge 2.3.1: 60 s on an owner's clock are at most 65 s on the manager's."""
    assert (PAPER.term_ns, PAPER.hold_ns) == (60 * SECOND_NS, 65 * SECOND_NS)


def test_the_owner_believes_for_a_part_of_the_time_in_which_nobody_else_gets_it() -> None:
    """Centrifuge 2.3.1, figure 5: belief begins with the answer, and counts from the request."""
    stage = Stage()
    a = stage.owner("a")
    stage.run()
    request = next_request(stage)
    asked = stage.now
    stage.let_pass(2)  # on its way there
    stage.carry(request)
    received = stage.now
    before = a.holdings
    stage.let_pass(2)  # on its way back
    assert a.holdings == before
    stage.carry(stage.take_out(LeaseResponse))
    assert a.holdings.expires_at == asked + PAPER.term_ns
    assert session_of(stage, a).hold_until == received + PAPER.hold_ns


@pytest.mark.parametrize(("rate", "is_safe"), [(60 / 65, True), (1.0, True), (0.85, False)])
def test_only_the_speed_of_clocks_is_assumed(rate: float, is_safe: bool) -> None:
    """Centrifuge 2.3.1: clocks need not agree, only run at about one speed, within 65 to 60.

    An owner's clock that runs slower than that is outside of what is assumed: two owners then
    believe in one key. That the assumption is needed belongs to the claim.
    """
    stage = Stage(make_policy=split_in_two)
    a = stage.owner("a", rate=rate)  # its clock also shows another time
    b = stage.owner("b")
    stage.run(4)
    stage.cut_off.append(a)
    most = max(len(stage.holders(b"a")) for _ in seconds_of(stage, 80))
    assert (most == 1) is is_safe
    assert stage.holders(b"a") == [b]


# --- 2.3.2: messages ----------------------------------------------------------------------------


def test_a_recalled_range_has_its_next_owner_after_a_round_trip() -> None:
    """Centrifuge 2.3.2: recalls make ranges available without waiting for a lease to run out."""
    stage = Stage(make_policy=split_in_two)
    stage.owner("a")
    stage.run(10)
    b = stage.owner("b")
    stage.run(PAPER.gather_ns / SECOND_NS + 0.1)
    assert b.number(b"z")


def test_a_recall_that_its_owner_never_heard_waits_for_the_hold() -> None:
    """Centrifuge 2.3.2: a recall frees nothing until it is acknowledged, or the lease has ended."""
    stage = Stage(make_policy=split_in_two)
    a = stage.owner("a")
    stage.run(4)
    b = stage.owner("b")
    stage.run(0.5)
    stage.carry(next_request(stage, by=a))  # poked, it asks; the recall is in the answer,
    recall = stage.take_out(LeaseResponse)
    assert [lease.mark for lease in recall.message.leases] == ["renewed", "recalled"]
    stage.cut_off.append(a)  # which is lost
    most = max(len(stage.holders(b"z")) for _ in seconds_of(stage, 80))
    assert most == 1
    assert stage.holders(b"z") == [b]


def test_a_poke_and_a_request_may_cross() -> None:
    """Centrifuge 2.3.2, otherwise: nothing is dropped, and nobody backs off.

    In the paper both sides send leases, so messages cross, and both are dropped and sent again
    after a random pause. Here the manager only pokes. A poke that crosses a request makes the owner
    ask once more when that is answered.
    """
    stage = Stage(make_policy=split_in_two)
    a = stage.owner("a")
    stage.run(4)
    request = next_request(stage)
    asked = len(requests(stage, a))
    stage.owner("b")
    stage.run(1.5)  # the manager plans, and pokes
    assert stage.messages(Poke, to=a)
    assert len(requests(stage, a)) == asked
    stage.carry(request)
    stage.settle()
    assert len(requests(stage, a)) > asked
    assert len(stage.holders(b"z")) == 1
    assert not {"old answer", "late request"} & {*a.notes, *stage.leader.notes}


def test_an_owner_has_one_request_unanswered_and_numbers_it_anew() -> None:
    """Centrifuge 2.3.2, otherwise: one rising number is enough where only one side asks."""
    stage = Stage()
    a = stage.owner("a")
    stage.run(4)
    stage.cut_off.append(a)
    stage.run(50)
    stage.cut_off.clear()
    stage.run(30)
    sequences = [request.sequence for request in requests(stage, a)]
    assert sequences == sorted(set(sequences))
    assert a.number(KEY)


def test_an_answer_to_an_earlier_request_is_discarded_for_good() -> None:
    """Centrifuge 2.3.2: an answer that was overtaken is not taken up later: its leases
    may be gone.
    """
    stage = Stage()
    a = stage.owner("a")
    stage.run(4)
    stage.carry(next_request(stage))
    late = stage.take_out(LeaseResponse)
    before = a.holdings
    next_request(stage)  # it asks again, and now counts on the answer to that
    stage.carry(late)
    assert a.holdings == before
    assert a.notes[-1] == "old answer"


def test_a_message_of_an_earlier_life_is_not_taken_for_one_of_this() -> None:
    """Centrifuge 2.3.2: a nonce for each session, so that what a dead owner sent is recognised."""
    stage = Stage()
    a = stage.owner("a")
    stage.run(4)
    straggler = next_request(stage)
    a.kill()
    stage.run(70)
    again = stage.owner("a")
    stage.run(4)
    table = stage.table.entries()
    stage.carry(straggler)
    stage.settle()
    assert stage.table.entries() == table
    assert again.number(KEY)
    assert stage.messages(Refusal)[-1].reason == "past"


def test_a_manager_that_leads_again_takes_nothing_that_was_meant_for_its_first_time() -> None:
    """Centrifuge 2.3.2, more: the manager has a nonce too, drawn for each leadership (P2, P9).

    A request of the first time, still in a socket in the second, lists less than its owner has been
    granted since. If it were taken, the rest would be given to another beside it.
    """
    stage = Stage(make_policy=split_in_two)
    a, b = stage.owner("a"), stage.owner("b")
    stage.run(4)
    straggler = next_request(stage, by=a)
    b.close()
    assert [held.range for held in straggler.message.held] == [KeyRange(b"", b"m")]
    stage.run(70)
    number = a.number(b"z")
    stage.cut_off.append(a)
    stage.journal.vacate()  # revoked early
    stage.run(10)
    assert stage.leader.machine.leadership.leadership == 2
    stage.carry(straggler)
    assert stage.table.rights[b"z"].owner == a.machine.belief.incarnation
    stage.cut_off.clear()
    stage.run(30)
    assert a.number(b"z") == number


def test_a_join_lists_nothing_and_changes_nothing_until_it_echoes_the_managers_nonce() -> None:
    """Centrifuge 2.3.2, more: joining takes two exchanges; a join of long ago joins nobody (P9)."""
    stage = Stage()
    a = stage.owner("a")
    stage.run(0)
    first = stage.messages(Join, by=a)[0]
    assert first.manager_nonce == session_nonce(stage)
    a.kill()
    stage.run(70)
    assert not stage.table.members
    stage.leader.kill()
    stage.manager("m2")
    stage.run(40)
    stage.leader.on_message(a, first)
    stage.run(0)
    assert not stage.table.members


def session_nonce(stage: Stage) -> int:
    leader = stage.leader.machine.leader
    assert leader is not None
    return leader.context.seal.nonce
