"""A policy in a process of its own: whatever it does, there is a plan or a reason, in time."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from threading import Thread
from typing import Any

import msgspec
import pytest

from tenure.base.instants import FAR_FUTURE, Instant, seconds
from tenure.base.rangemap import RangeMap
from tenure.bounded_child import command, environment, framed
from tenure.manager import policy_process
from tenure.manager.policy_messages import HELD_BACK, ToldPlan, asked
from tenure.manager.policy_process import PolicyProcess
from tenure.protocol.balance.outside import Outside
from tenure.protocol.balance.planning import Planned, Planning, PlanningFailed
from tenure.protocol.balance.policy import Candidate, Pin, PolicyFailed, Situation
from tenure.protocol.balance.weighted import Weighted
from tenure.protocol.lease.limits import RANGES_PER_TABLE
from tenure.protocol.lease.records import Steering
from tenure.testing.contracts.situations import EMPTY, carried_out, skewed
from tests.patience import DEADLINE_SECONDS
from tests.unit.manager import sample_policies

ROOT = Path(__file__).parents[3]
CANDIDATES = [Candidate(1, "ann", labels={"zone": "a"}), Candidate(2, "bob", 2.0)]
NEW = Situation(CANDIDATES, EMPTY)


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@contextmanager
def running(name: str, plan_seconds: int = 1, **limits: float) -> Iterator[PolicyProcess]:
    target = name if ":" in name else f"{sample_policies.__name__}:{name}"
    process = PolicyProcess(target, plan_seconds, **limits)  # type: ignore[arg-type]
    try:
        yield process
    finally:
        process.close()


@contextmanager
def child(target: str, *idle_seconds: str) -> Iterator[Popen[bytes]]:
    """Only the process, as it is begun."""
    begun = command("tenure.manager.policy_child", target, "1", str(1 << 30), *idle_seconds)
    with Popen(begun, stdin=PIPE, stdout=DEVNULL, env=environment(), process_group=0) as process:
        try:
            yield process
        finally:
            process.kill()


def made(policy: PolicyProcess, situation: Situation = NEW) -> Planned | PlanningFailed:
    """What a leader gets of it."""
    return Planning("p", Outside(policy), situation, Steering(), 0).carry_out()


def test_its_plan_comes_back_with_all_that_it_says() -> None:
    with running("ToFirst", 30) as policy:
        plan = policy(NEW)
        assert plan.owners == RangeMap(1)
        assert plan.why[b""] == ("first", "it was there first")
        assert plan.held_back == [("everything else", "round 0")]
        assert plan.again_at == FAR_FUTURE


def test_it_finds_its_memory_again_as_long_as_its_process_lives() -> None:
    with running("ToFirst", 30) as policy:
        plan = policy(NEW)
        later = policy(NEW._replace(memory=plan.memory))
        assert later.held_back[0].why == "round 1"
        policy.end()
        assert policy(NEW._replace(memory=later.memory)).held_back[0].why == "round 0"
        assert policy(NEW._replace(memory=plan.memory)).held_back[0].why == "round 0"


def test_one_of_ours_plans_there_as_it_does_here() -> None:
    pins = [Pin(b"\x42" * 8, "bob")]
    here, mine, theirs = Weighted(), None, None
    with running("Ours", 30) as there:
        table = EMPTY
        for round_ in range(5):
            now, loads = Instant(seconds(30 * round_)), skewed(table, round_)
            situation = Situation(CANDIDATES, table, now, loads, pins)
            plan = here(situation._replace(memory=mine))
            told = there(situation._replace(memory=theirs))
            mine, theirs, table = plan.memory, told.memory, carried_out(plan)
            assert told == plan._replace(memory=told.memory, held_back=list(plan.held_back))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Raises", "KeyError: 'no plan for 2'"),
        ("Sleeps", "it took more than 2 s, and was ended"),
        ("EatsMemory", "MemoryError"),
        ("Exits", "its process ended with status 7"),
        ("Overlaps", "its owners overlap, or are out of order, at b'a'"),
        ("LeavesGaps", "its owners do not cover the key space"),
        ("Strange", "it gives ranges to 99, which is not a candidate"),
        ("ToNobody", "it gives 1 range to nobody, and there are owners for them"),
        ("Crumbles", "its plan has 200000 ranges; the limit is 131072"),
        ("NoPlan", "it returned NoneType, which is no tenure.policies.Plan"),
        ("Words", "its answer is no plan: Expected `int`, got `str`"),
        ("Impatient", "it wants to be asked again at 0, which is not later"),
        ("NotCallable", "makes a NotCallable, which cannot be called"),
        ("NeedsArguments", "missing 1 required positional argument: 'tuning'"),
        ("Absent", "has no attribute 'Absent'"),
        ("no_such_module:Policy", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("os:getcwd", "makes a str, which cannot be called"),
    ],
)
def test_what_gives_no_plan_costs_the_plan_and_says_why(name: str, why: str) -> None:
    with running(name) as policy:
        began = time.monotonic()
        failed = made(policy)
        assert isinstance(failed, PlanningFailed)
        assert why in failed.why
        assert not failed.hangs
        assert time.monotonic() - began < DEADLINE_SECONDS


@pytest.mark.parametrize("field", range(1, 6))
def test_an_answer_with_too_many_of_anything_is_not_decoded(field: int) -> None:
    """Else the manager would stand still for as long as millions take, and fill its memory."""
    many = 1 + (HELD_BACK if field == 5 else RANGES_PER_TABLE)
    fields: list[object] = ["", [], [], [], [], []]
    fields[field] = [True] * many  # wrong as well: but nobody looks at any
    with pytest.raises(msgspec.ValidationError, match="of length"):
        msgspec.msgpack.decode(msgspec.msgpack.encode(fields), type=ToldPlan)


def test_one_that_spins_is_ended_by_the_system_or_by_the_clock() -> None:
    """Which of the two comes first depends on what else the machine has to do."""
    with running("Spins") as policy:
        failed = made(policy)
        assert isinstance(failed, PlanningFailed)
        assert "it took more than 2 s" in failed.why or "it may use 1 s of a" in failed.why


def test_after_a_failure_it_is_asked_in_a_process_anew() -> None:
    with running("Exits") as policy:
        for _ in range(2):
            assert isinstance(made(policy), PlanningFailed)


def test_a_process_that_was_killed_meanwhile_costs_nobody_a_plan() -> None:
    with running("ToFirst", 30) as policy:
        policy(NEW)
        assert policy._process is not None
        policy._process.send_signal(signal.SIGKILL)
        policy._process.wait()
        assert policy(NEW).owners == RangeMap(1)


def test_a_module_that_hangs_while_it_is_imported_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hanging_module.py").write_text("import time\ntime.sleep(3600)\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT}")
    with (
        running("hanging_module:Policy", begin_seconds=1.0) as policy,
        pytest.raises(PolicyFailed, match="importing it took more than 1 s"),
    ):
        policy(NEW)


def test_a_module_that_hangs_while_it_is_imported_ends_with_the_manager(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hanging_module.py").write_text("import time\ntime.sleep(3600)\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT}")
    with child("hanging_module:Policy") as process:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(DEADLINE_SECONDS) == -signal.SIGKILL


def test_a_process_that_nobody_asks_ends_in_good_order() -> None:
    with child(f"{sample_policies.__name__}:ToFirst", "1") as process:
        assert process.wait(DEADLINE_SECONDS) == 0


def test_whoever_closes_it_waits_for_no_plan() -> None:
    with running("Sleeps", 600) as policy:
        failed: list[str] = []

        def ask() -> None:
            try:
                policy(NEW)
            except PolicyFailed as error:
                failed.append(str(error))

        thread = Thread(target=ask)
        thread.start()
        gives_up_at = time.monotonic() + DEADLINE_SECONDS
        while policy._process is None and time.monotonic() < gives_up_at:
            os.sched_yield()
        policy.close()
        thread.join(DEADLINE_SECONDS)
        assert len(failed) == 1
        with pytest.raises(PolicyFailed, match="the manager ends"):
            policy(NEW)


def is_running(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def until(is_so: Callable[[], bool]) -> None:
    gives_up_at = time.monotonic() + DEADLINE_SECONDS
    while not is_so():
        assert time.monotonic() < gives_up_at
        os.sched_yield()


def test_a_process_that_it_has_forked_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(sample_policies.TROUBLE, str(tmp_path))
    with running("Forks") as policy:
        assert "it took more than 2 s" in getattr(made(policy), "why", "")
        [number] = (int(each.name) for each in tmp_path.iterdir())
        until(lambda: not is_running(number))


def test_a_process_that_it_has_forked_ends_with_the_manager(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(sample_policies.TROUBLE, str(tmp_path))
    with child(f"{sample_policies.__name__}:Forks") as process:
        assert process.stdin is not None
        process.stdin.write(framed(asked(NEW)))
        process.stdin.flush()
        until(lambda: any(tmp_path.iterdir()))
        [number] = (int(each.name) for each in tmp_path.iterdir())
        process.stdin.close()
        until(lambda: not is_running(number))


def test_whoever_closes_it_while_it_begins_waits_for_no_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with running("Sleeps") as policy:
        closing = Thread(target=policy.close)

        def begun(*args: Any, **how: Any) -> Popen[bytes]:  # noqa: ANN401
            process: Popen[bytes] = Popen(*args, **how)
            closing.start()
            until(policy._closed.is_set)
            return process

        monkeypatch.setattr(policy_process, "Popen", begun)
        with pytest.raises(PolicyFailed, match="the manager ends"):
            policy(NEW)
        closing.join(DEADLINE_SECONDS)
        assert policy._process is None


def test_it_gets_no_token_and_writes_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENURE_TOKEN", "secret")
    monkeypatch.setenv(sample_policies.TROUBLE, str(tmp_path))
    with running("Writes", 30) as policy:
        failed = made(policy)
        assert isinstance(failed, PlanningFailed)
        assert (tmp_path / "written").read_text() == ""
        assert (
            policy._process is None
            or b"TENURE" not in Path(f"/proc/{policy._process.pid}/environ").read_bytes()
        )
