"""`tenure simulate`: tests of users' own services under many seeds."""

import re

import pytest

from tenure.cli import waiting
from tenure.cli.app import run
from tenure.cli.simulation import found

HERE = "tests.unit.cli.simulated_rooms"
ONE_BY_ONE = ["--workers", "1"]


def test_seeds_that_pass_are_counted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "SILENT_SECONDS", 0)
    asked = ["simulate", f"{HERE}:greets", "--seed", "3", "--seeds", "2", *ONE_BY_ONE]
    assert run(asked) == 0
    said = capsys.readouterr()
    passed = r"every seed passed \(3 to 4, [\d,]+ answers and frames judged\)\n"
    assert re.fullmatch(passed, said.out)
    assert "0 of 2 seeds passed (0 s)\n" in said.err


def test_seeds_run_on_several_cores(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", f"{HERE}:greets", "--seeds", "2", "--workers", "2"]) == 0
    assert "every seed passed (0 to 1, " in capsys.readouterr().out


def test_the_first_seed_that_fails_ends_it_with_its_story(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["simulate", f"{HERE}:unchecked", "--seeds", "50", *ONE_BY_ONE]) == 1
    out = capsys.readouterr().out
    assert "does not hold 'attic' at this instant" in out
    assert "repeat it with: pytest --tenure-seed " in out
    assert "passed" not in out


def test_minutes_and_faults_take_the_place_of_what_the_test_says() -> None:
    said = found(f"{HERE}:unchecked")
    limited = said.limited(0.5, "message")
    assert limited.trial.hours == 0.5 / 60
    assert {"drop", "duplicate"} < set(limited.trial.faults) < set(said.trial.faults)
    assert said.limited(None, None) == said


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([f"{HERE}:silent", "--seeds", "1", *ONE_BY_ONE], "nothing was judged"),
        (["nowhere:test"], "No module named 'nowhere'. Name the test as MODULE:TEST"),
        ([""], "Name the test as MODULE:TEST"),
        ([f"{HERE}:ROOMS"], "no simulated test 'ROOMS'; it has greets, unchecked, silent"),
        ([HERE], "no simulated test ''; it has greets, unchecked, silent"),
        ([f"{HERE}:greets", "--seeds", "0"], "--seeds 0: from 1 on"),
        ([f"{HERE}:greets", "--seed", "-1"], "--seed -1: from 0 on"),
        ([f"{HERE}:greets", "--workers", "-1"], "--workers -1: from 0 on"),
        ([f"{HERE}:greets", "--minutes", "0"], "--minutes 0: more than 0"),
        ([f"{HERE}:greets", "--faults", "fire"], "no fault is called 'fire'; there are "),
    ],
)
def test_what_cannot_be_run_is_refused(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["simulate", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert complaint in said.err
