"""`python -m lab simulate`: what it prints, what it refuses, and its exit codes."""

import json
import shlex
from contextlib import redirect_stdout
from io import StringIO

import pytest

from lab.commands import run
from lab.mutants.catalogue import mutant
from lab.mutants.running import run_without
from lab.simulate.verdict import LeaseVerdict
from lab.worlds.lease.trial import Trial
from tenure.cli import waiting

SHORT = ["simulate", "--hours", "0.1", "--workers", "1"]


def test_the_summary_says_what_was_done_and_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*SHORT, "--seed", "3", "--seeds", "2", "--faults", "drop,suspend"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "preset paper, seeds 3 to 4"
    assert any(line.split() == ["simulated", "hours", "0.2"] for line in lines)
    assert [line.split()[0] for line in lines[1:4]] == ["simulated", "messages", "takeovers"]
    assert lines[-1].startswith("every promise was kept (seeds 3 to 4, fingerprint ")


def test_kinds_that_never_struck_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*SHORT, "--seed", "1", "--faults", "none"]) == 0
    assert "never:" not in capsys.readouterr().out
    struck = set[bool]()
    for seed in range(6):
        assert run([*SHORT, "--seed", f"{seed}", "--faults", "leaving"]) == 0
        struck.add("  never: leaving" in capsys.readouterr().out)
    assert len(struck) == 2


def test_a_simulation_says_how_far_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "SILENT_SECONDS", 0)
    assert run([*SHORT, "--seeds", "1"]) == 0
    said = capsys.readouterr().err
    assert "python -m lab simulate: still working (0 s)\n" in said
    assert "simulated 0.0 of 0.1 hours (0 s)\n" in said


def said_of(tier: str, name: str, arguments: list[str]) -> tuple[int, str, str]:
    """The exit code and the words of a simulation with a rule left out, and those of its replay."""
    return run_without(mutant(tier, name), told_twice, arguments)


def told_twice(arguments: list[str]) -> tuple[int, str, str]:
    first, again = StringIO(), StringIO()
    with redirect_stdout(first):
        code = run(arguments)
    said = first.getvalue()
    is_json = "--json" in arguments
    replay = json.loads(said)["failure"]["replay"] if is_json else said.splitlines()[-1]
    with redirect_stdout(again):
        assert run(shlex.split(replay)[3:]) == code
    return code, said, again.getvalue()


def test_a_failure_has_a_story_and_the_command_that_tells_it_again() -> None:
    code, out, replayed = said_of("lease", "answer-before-commit", [*SHORT, "--seeds", "40"])
    assert code == 1
    broken = next(line for line in out.splitlines() if line.startswith("BROKEN, by seed "))
    assert "S4: told before it was durable" in broken
    assert out.splitlines()[-1].split()[0] == "python"
    assert broken in replayed


def test_json_says_the_same_to_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*SHORT, "--seed", "5", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["first_seed"], said["seeds"], said["failure"]) == (5, 1, None)
    assert said["never"] == [kind for kind, count in said["faults"].items() if not count]
    code, out, _ = said_of("lease", "answer-before-commit", [*SHORT, "--seeds", "40", "--json"])
    assert code == 1
    failure = json.loads(out)["failure"]
    assert failure["promise"] == "S4"
    assert failure["replay"].startswith(f"python -m lab simulate --seed {failure['seed']} ")
    assert failure["story"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--hours", "0"], "--hours 0: "),
        (["--hours", "-1"], "--hours -1: "),
        (["--hours", "nan"], "--hours nan: "),
        (["--hours", "inf"], "--hours inf: "),
        (["--seeds", "0"], "--seeds 0: "),
        (["--seed", "-1"], "--seed -1: "),
        (["--workers", "-1"], "--workers -1: "),
        (["--preset", "fast"], "there are paper, default, test"),
        (["--faults", "drop,fire"], "no fault is called 'fire'; there are crash, "),
    ],
)
def test_what_cannot_be_run_is_refused_with_what_can(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["simulate", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert complaint in said.err


def test_a_replay_names_the_very_hours() -> None:
    """A rounded span ends another way."""
    verdict = LeaseVerdict(Trial(seed=1, hours=0.5000004321), "all")
    assert "--hours 0.5000004321 " in verdict.replay(7)


COLUMNS = ["simulate", "--tier", "columns", "--hours", "0.1", "--workers", "1"]


def test_the_store_on_several_machines_is_simulated_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run([*COLUMNS, "--seed", "3", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["tier"], said["seeds"], said["failure"]) == ("columns", 1, None)
    code, out, _ = said_of("columns", "digests-not-compared", [*COLUMNS, "--seeds", "20"])
    assert (code, "--tier columns" in out.splitlines()[-1]) == (1, True)
    assert run([*COLUMNS, "--preset", "test"]) == 2


def test_a_kind_of_fault_that_was_never_seen_fails_where_every_one_is_wanted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    short = ["simulate", "--columns", "--hours", "0.02", "--jobs", "1", "--seed", "0"]
    assert run([*short, "--faults", "disk lost", "--every-fault"]) == 1
    said = capsys.readouterr()
    assert "every promise was kept" in said.out
    assert "never seen: disk lost" in said.err
    assert run([*short, "--faults", "disk lost"]) == 0
    assert run([*short, "--faults", "none", "--every-fault"]) == 0
    assert run(["simulate", "--columns", "--tier", "cache"]) == 2


CACHES = ["simulate", "--tier", "cache", "--hours", "0.1", "--workers", "1"]


def test_caches_are_simulated_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*CACHES, "--seed", "3", "--seeds", "2", "--faults", "drop,crash"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "caches, seeds 3 to 4"
    assert lines[-1].startswith("every promise was kept (seeds 3 to 4, fingerprint ")
    assert run([*CACHES, "--seed", "3", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["tier"], said["seeds"], said["failure"]) == ("cache", 1, None)


def test_a_failure_of_caches_is_told_again() -> None:
    code, out, replayed = said_of("cache", "nobody-waited-for", [*CACHES, "--seeds", "20"])
    assert code == 1
    broken = next(line for line in out.splitlines() if line.startswith("BROKEN, by seed "))
    assert broken in replayed


def test_entities_are_simulated_too(capsys: pytest.CaptureFixture[str]) -> None:
    entities = ["simulate", "--tier", "entity", "--hours", "0.1", "--workers", "1"]
    assert run([*entities, "--seed", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "entities, preset paper, seed 3"
    code, out, replayed = said_of("entity", "no-answers", [*entities, "--json"])
    assert code == 1
    failure = json.loads(out)["failure"]
    promise = failure["promise"]
    assert promise in ("done once", "alarms"), "what is done twice sets its alarms twice"
    assert f"BROKEN, by seed {failure['seed']}: {promise}" in replayed


def test_services_are_simulated_too(capsys: pytest.CaptureFixture[str]) -> None:
    services = ["simulate", "--tier", "services", "--hours", "0.05", "--workers", "1"]
    assert run([*services, "--seed", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "services, preset paper, seed 3"
    asked = [*services, "--seeds", "5", "--json"]
    code, out, _ = said_of("services", "published-under-any-id", asked)
    assert code == 1
    failure = json.loads(out)["failure"]
    assert failure["promise"] == "counted once"
    assert "--tier services" in failure["replay"]


def test_caches_have_no_preset(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*CACHES, "--preset", "test"]) == 2
    assert "--tier lease" in capsys.readouterr().err
