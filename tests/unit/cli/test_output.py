"""Output: tabbed for programs, drawn for people, and never steered by a name in it."""

import json

import pytest

from tenure.cli.output import complain, put, say, show

ROWS = [("ann", 3), ("\x1b[2Jbob\n[bold]", 4)]


def test_programs_get_a_line_of_names_and_then_tabbed_lines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show(("owner", "ranges"), ROWS, empty="nobody")
    assert capsys.readouterr().out == "owner\tranges\nann\t3\n\\x1b[2Jbob\\n[bold]\t4\n"


def test_people_get_a_table_or_are_told_that_there_is_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    show(("owner", "ranges"), ROWS, empty="nobody")
    drawn = capsys.readouterr().out
    assert "\\x1b[2Jbob\\n[bold]" in drawn
    assert "\x1b[2J" not in drawn
    show(("owner", "ranges"), [], empty="nobody")
    assert capsys.readouterr().out == "nobody\n"


def test_a_narrow_terminal_gets_fewer_columns_and_a_wide_one_all(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    columns, rows = ("owner", "address", "load"), [("a" * 30, "b" * 30, "c" * 30)]

    def drawn(width: int) -> str:
        monkeypatch.setenv("COLUMNS", str(width))
        show(columns, rows, empty="", can_go=("load", "address"))
        return capsys.readouterr().out

    assert all(name in drawn(110) for name in columns)
    assert [name in drawn(80) for name in columns] == [True, True, False]
    assert [name in drawn(40) for name in columns] == [True, False, False]


def test_lines_stay_lines(capsys: pytest.CaptureFixture[str]) -> None:
    say("a\nb")
    complain("c\rd")
    assert capsys.readouterr() == ("a\\nb\n", "tenure: c\\rd\n")


def test_json_is_what_it_was_and_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON itself escapes only the oldest control characters."""
    said = {"key": "a\x1b[2J \x9b2J \u202ecod.exe \U000e0041 ö😀\n", "more": [1]}
    put(json.dumps(said, ensure_ascii=False, indent=1))
    shown = capsys.readouterr().out
    assert json.loads(shown) == said
    assert all(each.isprintable() for each in shown.split("\n"))
    assert "ö😀" in shown
