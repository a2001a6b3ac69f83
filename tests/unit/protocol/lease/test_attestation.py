"""A witness concludes only what it may from what it saw, and answers only the right ones (rule
P14).
"""

from collections.abc import Callable

import msgspec
import pytest

from tenure.protocol.lease.attestation import Sight, may_attest
from tenure.protocol.lease.messages import Attest, Attested, Join, Process
from tenure.protocol.lease.owner import events
from tests.unit.protocol.lease.driven_owner import (
    MANAGER_NONCE,
    PROCESS,
    Driven,
    closed,
    holding,
    joining,
    lapsed,
    letting_go,
    refused,
    renewing,
)

DEAD = Process(boot_id="host", pid_namespace=1, time_namespace=1, pid=11, start_time=100)
QUESTION = Attest(pool="another", incarnation=3, process=DEAD, manager_nonce=MANAGER_NONCE)
GONE = Sight(seen_from=PROCESS, is_there=False)


@pytest.mark.parametrize(
    ("sight", "is_gone"),
    [
        (Sight(seen_from=PROCESS), False),
        (Sight(seen_from=PROCESS, is_there=True), False),
        (Sight(seen_from=PROCESS, is_there=False), True),
        (Sight(seen_from=PROCESS, is_there=None, start_time=101), True),
        (Sight(seen_from=PROCESS, is_there=True, start_time=99), True),
        (Sight(seen_from=PROCESS, is_there=True, start_time=100), False),
    ],
)
def test_nobody_there_or_another_start_time_shows_it_and_nothing_read_does_not(
    sight: Sight, is_gone: bool
) -> None:
    assert sight.shows_gone(DEAD) is is_gone


@pytest.mark.parametrize(
    ("first_ended", "others", "is_gone"),
    [
        (True, False, True),
        (True, True, False),
        (True, None, False),
        (False, False, False),
        (False, True, False),
    ],
)
def test_a_zombie_is_gone_when_its_task_list_was_read_and_holds_no_other(
    first_ended: bool, others: bool | None, is_gone: bool
) -> None:
    sight = Sight(
        seen_from=PROCESS,
        is_there=True,
        start_time=100,
        first_thread_ended=first_ended,
        has_other_threads=others,
    )
    assert sight.shows_gone(DEAD) is is_gone


@pytest.mark.parametrize(
    ("witness", "may"),
    [
        (PROCESS, True),
        (DEAD, False),
        (None, False),
        (msgspec.structs.replace(PROCESS, boot_id="elsewhere"), False),
        (msgspec.structs.replace(PROCESS, pid_namespace=2), False),
        (msgspec.structs.replace(PROCESS, time_namespace=2), False),
    ],
)
def test_a_witness_is_another_process_in_the_same_place(witness: Process | None, may: bool) -> None:
    assert may_attest(witness, DEAD) is may


# --- the owner ------------------------------------------------------------------------------------


def test_an_owner_says_with_its_join_which_process_it_is() -> None:
    asked = [message for message in joining().asked() if isinstance(message, Join)]
    assert [join.process for join in asked] == [PROCESS]


@pytest.mark.parametrize("phase", [joining, refused, holding, renewing, lapsed, letting_go])
def test_an_owner_that_is_asked_looks_and_says_what_is_certain(phase: Callable[[], Driven]) -> None:
    driven = phase()
    driven.hear(QUESTION)
    assert driven.actions == [events.Look("a", QUESTION)]
    driven.take(events.Looked("a", QUESTION, GONE))
    nonce = driven.machine.owner_nonce
    assert driven.asked() == [
        Attested(
            pool="another",
            incarnation=3,
            process=DEAD,
            witness=PROCESS,
            owner_nonce=nonce,
            manager_nonce=MANAGER_NONCE,
        )
    ]


def test_an_owner_that_sees_a_living_process_says_nothing() -> None:
    driven = holding()
    driven.hear(QUESTION)
    sight = Sight(seen_from=PROCESS, is_there=True, start_time=DEAD.start_time)
    driven.take(events.Looked("a", QUESTION, sight))
    assert driven.actions == []


@pytest.mark.parametrize(
    "question",
    [
        Attest(pool="p", incarnation=3, process=DEAD, manager_nonce=MANAGER_NONCE + 1),
        Attest(pool="p", incarnation=3, process=PROCESS, manager_nonce=MANAGER_NONCE),
        Attest(
            pool="p",
            incarnation=3,
            process=msgspec.structs.replace(DEAD, boot_id="elsewhere"),
            manager_nonce=MANAGER_NONCE,
        ),
    ],
)
def test_an_owner_does_not_look_for_another_leader_at_itself_or_elsewhere(
    question: Attest,
) -> None:
    driven = holding()
    driven.hear(question)
    assert driven.actions == []


def test_an_owner_looks_for_nobody_but_its_leader() -> None:
    driven = holding()
    driven.hear(QUESTION, manager="b")
    assert driven.actions == []


def test_an_owner_that_finds_itself_elsewhere_says_nothing() -> None:
    driven = holding()
    for seen_from in (None, msgspec.structs.replace(PROCESS, pid_namespace=2)):
        sight = Sight(seen_from=seen_from, is_there=False)
        driven.take(events.Looked("a", QUESTION, sight))
        assert driven.actions == []


def test_what_was_seen_is_told_to_nobody_who_did_not_ask() -> None:
    driven = holding()
    stale = msgspec.structs.replace(QUESTION, manager_nonce=1)
    for manager, question in (("b", QUESTION), ("a", stale)):
        driven.take(events.Looked(manager, question, GONE))
        assert driven.actions == []
    gone = closed()
    gone.take(events.Looked("a", QUESTION, GONE))
    assert gone.actions == []
