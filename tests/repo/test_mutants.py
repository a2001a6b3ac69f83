"""Each mutant is a change of one place that there is, and makes a program that can run."""

import subprocess
import sys
from pathlib import Path

import pytest

from lab.mutants.catalogue import ROOT, Mutant, Patch, mutant, mutants, tiers
from lab.mutants.copies import make_copy
from lab.mutants.running import run_without

ALL = [each for tier in tiers() for each in mutants(tier).values()]
RUFF = (sys.executable, "-m", "ruff", "check", "--isolated", "--quiet", "--output-format=concise")
FILE = "src/tenure/protocol/lease/attestation.py"


def sample(before: str, after: str) -> Mutant:
    return Mutant("lease", "sample", "a rule", (Patch(FILE, before, after),), "seeds")


def is_there(value: int) -> int:
    from tenure.protocol.lease import attestation  # noqa: PLC0415  # of the process that calls

    return value + len(attestation.__dict__.get("ADDED", ""))


def broken_programs(those: list[Mutant], root: Path) -> list[str]:
    """What ruff says of their files: errors of syntax, and names that nothing defines."""
    for each in those:
        for file, text in each.texts().items():
            path = root / each.tier / each.name / Path(file).name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    done = subprocess.run(
        [*RUFF, "--select=F821", str(root)], capture_output=True, text=True, check=False
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize("each", ALL, ids=lambda each: f"{each.tier}-{each.name}")
def test_a_mutant_changes_places_that_are_there_exactly_once(each: Mutant) -> None:
    for patch in each.patches:
        assert patch.before != patch.after
        assert patch.file.startswith(("src/tenure/", "lab/worlds/"))
    for file, text in each.texts().items():
        assert text != (ROOT / file).read_text()
    assert each.rule
    assert each.by in ("seeds", "schedule")


def test_every_mutant_is_a_program(tmp_path: Path) -> None:
    assert broken_programs(ALL, tmp_path) == []


def test_a_mutant_that_is_none_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="0 times"):
        sample("there is no such line", "x").texts()
    with pytest.raises(AssertionError, match=r"has \d+ times, and not once"):
        sample("return", "x").texts()
    unknown = sample("class Sight(", "UNKNOWN = missing\n\n\nclass Sight(")
    unread = sample("class Sight(", "class Sight((")
    assert any("F821" in line for line in broken_programs([unknown], tmp_path / "unknown"))
    assert any("invalid-syntax" in each for each in broken_programs([unread], tmp_path / "unread"))
    with pytest.raises(KeyError, match="no mutant of lease is called 'yellow'; there are no-hold"):
        mutant("lease", "yellow")


def test_a_mutant_runs_apart_and_says_what_it_returns_or_raises() -> None:
    adding = sample("class Sight(", 'ADDED = "four"\n\n\nclass Sight(')
    assert run_without(adding, is_there, 3) == 7
    assert is_there(3) == 3
    with pytest.raises(TypeError):
        run_without(adding, is_there, "three")


def test_a_copy_shares_what_it_does_not_change(tmp_path: Path) -> None:
    make_copy({FILE: "pass\n"}, tmp_path)
    assert (tmp_path / FILE).read_text() == "pass\n"
    beside = tmp_path / FILE.replace("attestation", "messages")
    assert beside.resolve() == ROOT / FILE.replace("attestation", "messages")
    assert (tmp_path / "src" / "tenure" / "base").resolve() == ROOT / "src" / "tenure" / "base"
