"""The page of results: written from its sections, one of which can be measured again alone."""

from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec

from benchmarks._pictures import Bar, Group, draw_bars
from benchmarks._report import Measured, Picture, Promise, Results, Section, Table, machine


def measured(name: str, seconds: float, **more: object) -> Measured:
    section = Section(
        title=f"About {name}",
        text="What was done.",
        tables=[Table(["", "s"], [["tenure", f"{seconds:g}"]])],
        pictures=[Picture(f"{name}.svg", "A picture", "<svg/>")],
        promises=[Promise("fast", "2 s", "1 s", is_kept=False)],
        notes=["redis: skipped, it is not there"],
    )
    return Measured(name, section, "quick", "2026-01-01 00:00 UTC", seconds, "0.1 to 0.2", "abc")


def test_the_page_has_every_section_in_order_with_its_tables_pictures_and_notes(
    tmp_path: Path,
) -> None:
    results = Results(tmp_path, ("first", "second"))
    results.keep(measured("second", 2))
    results.keep(measured("first", 1))
    page = results.write(machine(["tenure 1"])).read_text()
    assert page.index("About first") < page.index("About second")
    for line in (
        "| tenure | 2 |",
        "![A picture](results/second.svg)",
        "| fast | 2 s | 1 s | **no** |",
        "- redis: skipped, it is not there",
    ):
        assert line in page
    assert "Again: `python -m benchmarks --quick results --only first`" in page
    assert (tmp_path / "results" / "first.svg").read_text() == "<svg/>"


def test_what_is_measured_again_takes_the_place_of_what_was_and_the_others_stay(
    tmp_path: Path,
) -> None:
    results = Results(tmp_path, ("first", "second"))
    for name, seconds in (("first", 1.0), ("second", 2.0), ("first", 3.0)):
        results.keep(measured(name, seconds))
    assert [each.seconds for each in results.all()] == [3.0, 2.0]


def test_a_section_says_with_which_options_it_was_measured(tmp_path: Path) -> None:
    results = Results(tmp_path, ("first",))
    results.keep(msgspec.structs.replace(measured("first", 1), options=" --minutes 4 --pace 32"))
    page = results.write(machine(["tenure 1"])).read_text()
    assert "results --only first --minutes 4 --pace 32`" in page


def test_a_bar_picture_is_an_svg_in_which_what_is_nothing_has_a_label_and_no_bar() -> None:
    bars = [Bar("tenure", 0.0, "0 s"), Bar("a < b", 10.0, "10 s"), Bar("c", None, "never")]
    drawn = draw_bars("Gaps", "seconds", [Group("kill -9", bars)])
    root = ET.fromstring(drawn)  # noqa: S314  # it is our own
    texts = ["".join(each.itertext()) for each in root.iter() if each.tag.endswith("text")]
    assert {"0 s", "10 s", "never", "a < b", "kill -9"} <= set(texts)
    assert sum(each.tag.endswith("rect") for each in root.iter()) == 2  # the paper, and one bar
