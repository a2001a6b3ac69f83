"""Benchmarks: each says by its exit code whether its bounds are kept."""

import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks import balance, check, find, joins, planning, results, rolling, suite
from benchmarks.__main__ import PARTS, WITHOUT, told_apart
from benchmarks.__main__ import main as run_benchmarks
from tests.repo.reading import ROOT, report

PROGRAMS = sorted((ROOT / "benchmarks").glob("[!_]*.py"))


def complaints(path: str, text: str) -> list[str]:
    found = []
    if not re.search(r"^def main\(\) -> int:", text, re.MULTILINE):
        found.append(f"{path}:1 its main returns no exit code")
    if not text.endswith('if __name__ == "__main__":\n    sys.exit(main())\n'):
        found.append(f"{path}:1 it does not exit with what its main returns")
    return found


def test_every_benchmark_says_by_its_exit_code_whether_its_bounds_are_kept() -> None:
    assert PROGRAMS
    found = [
        each for path in PROGRAMS for each in complaints(f"benchmarks/{path.name}", read(path))
    ]
    assert found == [], report(found)


def read(path: Path) -> str:
    return path.read_text("utf-8")


@pytest.mark.parametrize(
    ("said", "names", "options"),
    [
        ([], [], []),
        (["rolling", "push"], ["rolling", "push"], []),
        (["rolling", "--rate", "9"], ["rolling"], ["--rate", "9"]),
    ],
)
def test_what_follows_the_name_of_a_benchmark_is_for_it(
    said: list[str], names: list[str], options: list[str]
) -> None:
    assert told_apart(said) == (names, options)


@pytest.mark.parametrize("said", [["--surge"], ["rolling", "push", "--surge"], ["unheard-of"]])
def test_options_for_no_one_benchmark_are_refused(
    said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_benchmarks(said) == 2
    assert "benchmark" in capsys.readouterr().out


@pytest.mark.parametrize(("said", "code"), [(["find", "--help"], 0), (["find", "--rows=9"], 2)])
def test_a_benchmark_without_options_does_not_run_when_given_one(
    said: list[str], code: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.__main__.run", None)
    assert run_benchmarks(said) == code
    told = capsys.readouterr().out
    assert (find.__doc__ or "").splitlines()[0] in told if code == 0 else "--rows=9" in told


def test_every_benchmark_has_a_quick_form() -> None:
    """A benchmark has one by its sizes, by being one part of the whole, or because another command
    is the same.
    """
    slow = [path.stem for path in PROGRAMS if "benchmarks._quick import" not in read(path)]
    assert set(slow) <= {*PARTS, *WITHOUT} <= {path.stem for path in PROGRAMS}


def test_what_runs_side_by_side_is_on_the_page() -> None:
    assert set(results.SIDE_BY_SIDE) < set(results.ORDER)
    modules = {path.stem for path in (ROOT / "benchmarks" / "experiments").glob("*.py")}
    assert set(results.ORDER) == modules


def test_a_benchmark_that_only_prints_is_found() -> None:
    text = 'def main() -> None:\n    print(1)\n\n\nif __name__ == "__main__":\n    main()\n'
    assert len(complaints("benchmarks/a.py", text)) == 2


@pytest.mark.parametrize(
    ("both", "tracked", "is_kept"), [(1000, 16, True), (1001, 16, False), (1000, 17, False)]
)
def test_check_keeps_both_bounds(both: float, tracked: int, is_kept: bool) -> None:
    assert check.report(both, tracked) is is_kept


@pytest.mark.parametrize(
    ("changed", "is_kept"),
    [({}, True), ({"find": 16.0}, False), ({"find, str": 16.0}, False), ({"ring": 40.0}, False)],
)
def test_find_keeps_all_bounds(changed: dict[str, float], is_kept: bool) -> None:
    figures = {"bare": 10.0, "find": 15.0, "bare, str": 10.0, "find, str": 15.0, "ring": 46.0}
    assert find.report({name: [time] for name, time in (figures | changed).items()}) is is_kept


@pytest.mark.parametrize(("appends", "is_kept"), [(40, True), (41, False)])
def test_joins_keeps_its_bound(appends: int, is_kept: bool) -> None:
    assert joins.report(appends, 0.5) is is_kept


@pytest.mark.parametrize(("seconds", "is_kept"), [(300, True), (300.5, False)])
def test_the_suite_keeps_its_bound(
    seconds: float, is_kept: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert suite.report(seconds) is is_kept
    assert "<= 300 s" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changed", "is_kept"),
    [
        ({}, True),
        ({"most": 1.11}, False),
        ({"most_of_rest": 1.16}, False),
        ({"churn": 0.041}, False),
        ({"settled": (31, 31, 31)}, False),
        ({"settled": (5, 5, 91)}, False),
        ({"case": balance.Case("ring", 10, 0.8), "most": 3.0}, True),
    ],
)
def test_balance_keeps_all_bounds_under_weighted(changed: dict[str, Any], is_kept: bool) -> None:
    case = balance.Case("weighted", 10, 0.8)
    good = balance.Figures(case, 1.0, 1.10, 1.15, 0, 0.04, 0.2, 120, 600, (5, 30, 90))
    assert balance.report([good, good._replace(**changed)]) is is_kept


@pytest.mark.parametrize(("seconds", "is_kept"), [(1.0, True), (1.01, False)])
def test_planning_keeps_its_bound(seconds: float, is_kept: bool) -> None:
    assert planning.report(seconds) is is_kept


ROLLED = rolling.Measured(
    requests=9, failed=0, at_once=0, lost=0, moves=[1.0, 1.2], drains=[1.0], quiet=0.01, rolling=0.1
)


@pytest.mark.parametrize(
    "worse",
    [{}, {"failed": 1}, {"at_once": 1}, {"lost": 1}, {"moves": [1.0, 1.5]}, {"rolling": 0.2}],
)
def test_what_a_rolling_restart_does_to_clients_is_held_to_its_bounds(
    worse: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert rolling.report(ROLLED._replace(**worse), rolling.MOVES) == (not worse)
    assert ("NOT KEPT" in capsys.readouterr().out) == bool(worse)


SIZED = re.compile(
    r"^\| (?P<what>[^|]+) \| (?P<figure>[\d.,]+%?) \| `(?P<name>\w+)` \|$", re.MULTILINE
)


def unmeasured(page: str, measured: str) -> list[str]:
    """The figures of a page that the measurement which they name does not have."""
    sections = {
        named[1]: section
        for section in measured.split("\n## ")
        if (named := re.search(r"--only (\w+)", section))
    }
    return [
        f"{row['what']}: {row['figure']}"
        for row in SIZED.finditer(page)
        if f" {row['figure']} |" not in sections.get(row["name"], "")
    ]


def test_the_page_on_sizing_has_the_figures_that_were_measured() -> None:
    """If this fails, somebody measured again: take the new figures, and read what the page makes of
    them.
    """
    page = read(ROOT / "docs" / "operating" / "sizing.md")
    assert len(list(SIZED.finditer(page))) > 15
    assert unmeasured(page, read(ROOT / "benchmarks" / "RESULTS.md")) == []


def test_a_figure_that_nobody_measured_is_found() -> None:
    measured = "\n## A\n| x | 5 | 6 |\n--only a`\n## B\n| y | 7 |\n--only b`"
    assert unmeasured("| it takes | 6 | `a` |\n| and | 7 | `a` |\n", measured) == ["and: 7"]
