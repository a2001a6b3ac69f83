"""The site of the documents: every page is in its navigation, and its pictures need no other host.

`make docs` builds it. These tests look at what it is built from, so they need no generator.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.repo.reading import ROOT, report
from tests.repo.test_prose import broken_links
from tools.site import pages, pictures, sequence, versions

PICTURES = ROOT / "docs" / "pictures"
# Anything that a picture would load from another host, as opposed to links and names.
FROM_ELSEWHERE = re.compile(r"(?:src|xlink:href)=\"https?:|url\(\W?https?:|@import")


def leaves(navigation: object) -> Iterator[str]:
    match navigation:
        case str():
            yield navigation
        case list():
            for each in navigation:
                yield from leaves(each)
        case dict():
            yield from leaves(list(navigation.values()))


def test_the_first_page_of_each_folder_lists_every_other() -> None:
    """If this fails, add the page to the `index.md` of its folder."""
    assert pages.unlisted(pages.in_docs((".md",))) == []


@pytest.mark.parametrize("page", ["docs/guides/new.md", "docs/new/index.md", "docs/start/a/b.md"])
def test_a_page_that_is_not_listed_is_found(page: str) -> None:
    assert pages.unlisted([page]) == [page]


def test_the_site_has_every_page_in_its_navigation_and_no_link_that_leads_nowhere(
    tmp_path: Path,
) -> None:
    screenshots = tmp_path / "screenshots"
    screenshots.mkdir()
    (screenshots / "a-ring.png").touch()
    site = tmp_path / "site"
    shown = sorted(leaves(pages.lay_out(site, screenshots)))
    assert shown == sorted(str(path.relative_to(site)) for path in site.rglob("*.md"))
    texts = {name: (site / name).read_text("utf-8") for name in shown}
    programs = "files/examples/"  # none of whose lines is a link
    found = [
        line
        for name, text in texts.items()
        if not name.startswith(programs) or name.endswith("README-.md")
        for line in broken_links(name, text, site)
    ]
    assert found == [], report(found)
    assert "![A ring](screenshots/a-ring.png)" in texts["operating/screenshots.md"]


def test_without_screenshots_the_site_says_how_to_take_them() -> None:
    assert "TENURE_SCREENSHOTS" in pages.screenshots_page([])


def test_a_link_between_the_documents_and_the_rest_is_turned() -> None:
    text = (
        "[a](../../examples/README.md#x) [b](../start/demo.md) [c](https://a.example/) [d](no.md)"
    )
    expected = "[a](../files/examples/README-.md#x) [b](../start/demo.md)"
    assert pages.relinked("docs/guides/a.md", text).startswith(expected)
    back = pages.relinked("README.md", "[a](docs/start/demo.md)")
    assert back == "[a](../start/demo.md)"


@pytest.mark.parametrize("name", [path.stem for path in sorted(PICTURES.glob("*.txt"))])
def test_a_diagram_is_what_its_text_says(name: str) -> None:
    """If this fails, run `make pictures`."""
    text = (PICTURES / f"{name}.txt").read_text("utf-8")
    assert (PICTURES / f"{name}.svg").read_text("utf-8") == sequence.draw(text)


def test_the_screen_of_top_is_what_top_draws_today() -> None:
    """If this fails, run `make pictures`, and look at it."""
    drawn = pictures.top_screen((PICTURES / "top.json").read_bytes())
    assert (PICTURES / "top.svg").read_text("utf-8") == drawn


def test_every_picture_is_shown_on_a_page() -> None:
    pages_of_docs = "".join(path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md"))
    drawn = [path.name for path in sorted(PICTURES.glob("*.svg"))]
    assert [name for name in drawn if f"pictures/{name})" not in pages_of_docs] == []


@pytest.mark.parametrize("line", ["A > C: x", "A: x", "A - ", "B x A: y"])
def test_a_line_that_is_no_step_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="not a step"):
        sequence.draw(f"Title\nA, B\n{line}\n")


def test_pictures_load_nothing_from_elsewhere() -> None:
    drawn = [*PICTURES.glob("*.svg"), *(ROOT / "benchmarks" / "results").glob("*.svg")]
    found = [str(each) for each in drawn if FROM_ELSEWHERE.search(each.read_text("utf-8"))]
    assert found == []
    assert FROM_ELSEWHERE.search('@font-face { src: url("https://fonts.example/a") }')


def test_the_first_screen_of_the_readme_shows_the_demo() -> None:
    assert "(docs/pictures/demo.svg)" in (ROOT / "README.md").read_text("utf-8")[:400]


def test_the_site_opens_at_its_newest_release(tmp_path: Path) -> None:
    for name in ("0.9.0", "0.10.0", "dev", "assets"):
        (tmp_path / name).mkdir()
        if name != "assets":
            (tmp_path / name / "index.html").touch()
    versions.write(tmp_path)
    told = json.loads((tmp_path / "versions.json").read_text("utf-8"))
    assert [each["version"] for each in told] == ["0.10.0", "0.9.0", "dev"]
    assert [each["aliases"] for each in told] == [["latest"], [], []]
    assert 'href="0.10.0/index.html"' in (tmp_path / "index.html").read_text("utf-8")
