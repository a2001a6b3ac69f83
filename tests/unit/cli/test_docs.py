"""`tenure docs` finds pages by their names and short names, and suggests the nearest name
otherwise.
"""

import re
from pathlib import Path

import pytest

from tenure.cli.app import run
from tenure.cli.docs import all_pages, directory, find
from tenure.errors import UsageError
from tests.repo.reading import ROOT, SRC


def test_all_pages_are_listed_with_their_titles(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["docs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.lower() == "operating/etcd\tetcd" for line in lines)
    assert len(lines) == 1 + len(list((ROOT / "docs").rglob("*.md")))


@pytest.mark.parametrize(
    ("said", "path"),
    [
        ("operating/etcd", "operating/etcd.md"),
        ("etcd", "operating/etcd.md"),
        ("docs/operating/etcd.md", "operating/etcd.md"),
        ("operating", "operating/index.md"),
        ("index", "index.md"),
    ],
)
def test_a_page_is_found_by_its_name_or_the_end_of_it(said: str, path: str) -> None:
    assert find(said, all_pages(directory())) == ROOT / "docs" / path


def test_a_page_is_printed_as_it_is_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["docs", "etcd"]) == 0
    assert capsys.readouterr().out == (ROOT / "docs/operating/etcd.md").read_text("utf-8")


def test_a_page_that_is_not_there_is_answered_with_the_nearest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["docs", "operating/etc"]) == 2
    said = capsys.readouterr().err
    assert "there is no page 'operating/etc'" in said
    assert "operating/etcd" in said
    assert run(["docs", "xyzzy"]) == 2
    assert "`tenure docs` lists all" in capsys.readouterr().err


def test_a_short_name_of_two_pages_names_both() -> None:
    pages = {"a/same": Path("1"), "b/same": Path("2")}
    with pytest.raises(UsageError, match=r"several pages are called 'same': .* a/same, b/same"):
        find("same", pages)


def test_every_page_that_the_code_cites_can_be_read() -> None:
    """`tenure docs`, which every installation has, shows them; an installation has no paths of the
    repository.
    """
    pages, cited, paths = all_pages(directory()), 0, []
    for module in sorted(SRC.rglob("*.py")):
        text = " ".join(module.read_text("utf-8").split())
        for page in re.findall(r"`tenure docs ([a-z/-]+)`", text):
            find(page, pages)
            cited += 1
        paths += [
            f"{module.name}: {each}" for each in re.findall(r"docs/[a-z-]+/[a-z-]+\.md", text)
        ]
    assert paths == []
    assert cited >= 5
