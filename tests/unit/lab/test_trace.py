"""`python -m lab trace`: tables, pictures, and what it refuses."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from lab.commands import run

SMALL = ["trace", "--scale", "0.002", "--workers", "1"]


def test_a_figure_is_a_table_and_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*SMALL, "--figure", "5", "--out", str(tmp_path / "pictures")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "Figure 5: Messages by timeout" in lines
    assert any(line.startswith("Delay(100,t,inf)\t") for line in lines)
    assert any(line.startswith("10 s\t") and line.endswith("32 %\t39 %") for line in lines)
    picture = ET.parse(tmp_path / "pictures" / "figure-5.svg").getroot()  # noqa: S314 - just made
    curves = picture.findall("{http://www.w3.org/2000/svg}polyline")
    assert len(curves) == 7


def test_json_has_the_points_of_every_curve(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*SMALL, "--figure", "9", "--figure", "11", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert sorted(said) == ["11", "9"]
    assert [x for x, _ in said["11"]["Callback"]] == [0.1, 0.3, 1, 3, 10, 30, 100]


def test_a_recorded_trace_is_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("0 read ann s /a\n5 read ann s /a\n7 write s /a\n", "utf-8")
    assert run(["trace", "--file", str(path), "--figure", "5", "--workers", "1"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert "Callback\t4\t4\t4\t4\t4\t4\t4" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--figure", "4"], "--figure 4: the paper's are 5 to 11"),
        (["--scale", "0"], "--scale 0: above 0"),
        (["--workers", "-1"], "--workers -1"),
        (["--file", "nowhere"], "the trace nowhere cannot be read"),
        (["--file", "x", "--figure", "11"], "--figure 11 changes how files are written"),
    ],
)
def test_what_cannot_be_done_is_said(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["trace", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_directory_that_cannot_be_written_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    assert run([*SMALL, "--figure", "9", "--out", str(tmp_path / "file")]) == 2
    assert "name a directory to write to" in capsys.readouterr().err
