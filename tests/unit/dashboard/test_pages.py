"""The files of the dashboard: nothing comes from elsewhere, and names are only ever text."""

import re
from importlib import resources

import pytest

from tenure.dashboard.pages import TYPES, add_pages
from tests.unit.manager.serving import serving

FILES = {
    file.name: file.read_text("utf-8")
    for file in (resources.files("tenure.dashboard") / "static").iterdir()
    if file.name.rpartition(".")[2] in TYPES
}
OURS = {"script-src", "style-src", "img-src", "connect-src"}
NOBODY = {"default-src", "base-uri", "form-action", "frame-ancestors"}
MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|"
    r"\beval\b|new Function|srcdoc|setAttribute\(.on|javascript:"
)
"""Ways in which a script makes elements, or code, of text."""


@pytest.mark.asyncio
async def test_every_file_is_shown_under_a_policy_that_lets_only_ours_run() -> None:
    async with serving(None, add_pages) as manager:
        for name in ["", *FILES]:
            url = f"{manager.service.url}/dashboard/{name}"
            async with manager.session.get(url) as answer:
                assert answer.status == 200
                policy = answer.headers["Content-Security-Policy"]
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                assert answer.headers["Referrer-Policy"] == "no-referrer"
            rules = dict(each.strip().split(" ", 1) for each in policy.split(";"))
            assert rules == dict.fromkeys(OURS, "'self'") | dict.fromkeys(NOBODY, "'none'")


def test_what_a_script_shows_is_text_and_never_markup() -> None:
    assert MARKUP.search("x.innerHTML = name")
    scripts = {name: text for name, text in FILES.items() if name.endswith(".js")}
    assert len(scripts) > 10
    for name, text in scripts.items():
        assert not MARKUP.search(text), name


def test_nothing_is_loaded_from_elsewhere_and_no_script_or_style_stands_in_the_page() -> None:
    for name, text in FILES.items():
        links = re.findall(r"(?:https?:)?//[\w.-]+\.\w+", text)
        assert set(links) <= {"http://www.w3.org"}, name  # the name of SVG, which is not fetched
    page = FILES["index.html"]
    assert re.findall(r"<script[^>]*>[^<]", page) == []
    assert "<style" not in page
    assert re.findall(r"\s(?:on\w+|style)=", page) == []
