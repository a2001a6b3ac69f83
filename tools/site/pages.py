"""Lays out the pages of the site, for the generator that makes HTML of them.

The pages of `docs/` are copied unchanged, except that a recording of the simulator takes the place
of a mark. Three kinds are added. Files elsewhere in the repository that a page links to, under
`files/`: programs as they are, and documents with their links. One page of the API reference for
each part of the public face, for which the generator reads the docstrings. And a page with the
screenshots of the dashboard that the tests last took.

This happens before the generator runs, and not in its plugins, so that another generator can take
its place.
"""

import json
import posixpath
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import tenure
from tools.site.live import with_recording

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (
    "start",
    "concepts",
    "guides",
    "services",
    "operating",
    "reference",
    "internals",
    "decisions",
)
LISTED = re.compile(r"\]\(([\w-]+\.md)")
LINK = re.compile(r"(\]\()([^)\s#]+)([^)\s]*\))")
INLINE = re.compile(r"(`+)[^`]*\1")
LANGUAGES = {".py": "python", ".toml": "toml", ".yml": "yaml"}
ASSETS = (".svg", ".png", ".js", ".css")
SCREENSHOTS = "operating/screenshots"
API = "reference/api"
PARTS = {
    "client": "Owners and lookups",
    "base": "Keys and ranges",
    "owned_state": "Owned state",
    "entities": "Entities",
    "member": "Members and relays",
    "routing": "Routing",
    "fencing": "Fences",
    "cache": "Caches",
    "columns": "Stores of rows",
    "transport": "Credentials",
    "observe": "Logs",
    "errors": "Errors",
}
"""The parts of the public face, in the order of the navigation."""


def lay_out(into: Path, screenshots: Path) -> list[object]:
    """Write every page into a folder, and return the navigation in which they all stand."""
    texts = dict(pages())
    pictures = sorted(screenshots.glob("*.png"))
    texts[f"{SCREENSHOTS}.md"] = screenshots_page(pictures)
    for name, text in texts.items():
        place = into / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")
    copied = [(path, uri(path)) for path in [*outside(), *in_docs(ASSETS)] if not is_page(path)]
    for source, target in [*copied, *((str(p), f"{SCREENSHOTS}/{p.name}") for p in pictures)]:
        (into / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / source, into / target)
    return navigation()


def pages() -> Iterator[tuple[str, str]]:
    """Every page but the screenshots, by its place in the site."""
    for path in in_docs((".md",)):
        yield uri(path), with_recording(relinked(path, (ROOT / path).read_text("utf-8")))
    for path in filter(is_page, outside()):
        yield uri(path), shown(path)
    yield from api()


def navigation() -> list[object]:
    """The first page of each folder lists the others: there is no second list to be kept."""
    found: list[object] = [{"Documents": "index.md"}]
    for folder in FOLDERS:
        entries: list[object] = [f"{folder}/{name}" for name in ("index.md", *listed(folder))]
        if folder == "operating":
            entries.append({"Screenshots": f"{SCREENSHOTS}.md"})
        if folder == "reference":
            entries.append({"API": [{name: f"{API}/{part}.md"} for part, name in PARTS.items()]})
        found.append({title(f"docs/{folder}/index.md"): entries})
    found.append({"Files": [{path: uri(path)} for path in outside() if is_page(path)]})
    return found


def listed(folder: str) -> list[str]:
    """The pages that the first page of a folder names, in its order."""
    text = (ROOT / "docs" / folder / "index.md").read_text("utf-8")
    return [name for name in dict.fromkeys(LISTED.findall(text)) if name != "index.md"]


def unlisted(pages: Iterable[str]) -> list[str]:
    """Those of these pages of `docs/` that no first page of a folder lists."""
    known = {"docs/index.md"}
    for folder in FOLDERS:
        known |= {f"docs/{folder}/{name}" for name in ("index.md", *listed(folder))}
    return sorted(set(pages) - known)


def in_docs(endings: tuple[str, ...]) -> list[str]:
    found = (path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.*"))
    return sorted(path for path in found if path.endswith(endings))


def outside() -> list[str]:
    """The files outside `docs/` that pages link to, and those to which these link in turn."""
    found: dict[str, None] = {}
    waiting = in_docs((".md",))
    while waiting:
        for target in targets(waiting.pop(0)):
            if not target.startswith("docs/") and target not in found:
                found[target] = None
                waiting += [target] if target.endswith(".md") else []
    return sorted(found)


def targets(path: str) -> Iterator[str]:
    for line in (ROOT / path).read_text("utf-8").splitlines():
        for _, link, _ in LINK.findall(INLINE.sub("", line)):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
            if ":" not in link and (ROOT / target).is_file():
                yield target


def is_page(path: str) -> bool:
    return not path.endswith(ASSETS)


def uri(path: str) -> str:
    """Where in the site a file of the repository is."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    # A generator takes README.md for the first page of its folder, and index.md too.
    plain = path.replace("README.md", "README-.md")
    return f"files/{plain}" + ("" if path.endswith((".md", *ASSETS)) else ".md")


def title(path: str) -> str:
    return (ROOT / path).read_text("utf-8").partition("\n")[0].removeprefix("# ")


def shown(path: str) -> str:
    """A file outside `docs/`, as a page."""
    text = (ROOT / path).read_text("utf-8")
    if path.endswith(".md"):
        return relinked(path, text)
    return f"# {path}\n\n~~~~{LANGUAGES.get(Path(path).suffix, 'text')}\n{text}\n~~~~\n"


def relinked(path: str, text: str) -> str:
    """The text of a page, whose links lead to where the site has what they name."""
    here = posixpath.dirname(uri(path))

    def turned(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), found[2]))
        if ":" in found[2] or not (ROOT / target).is_file():
            return found[0]
        return found[1] + posixpath.relpath(uri(target), here) + found[3]

    return LINK.sub(turned, text)


def api() -> Iterator[tuple[str, str]]:
    """The pages of the reference: each public name with its docstring."""
    places = dict(tenure._WHERE)  # noqa: SLF001  # where each public name is
    for part, heading in PARTS.items():
        names = [name for name, where in places.items() if where.split(".")[1] == part]
        told = "".join(f"::: {places.pop(name)}.{name}\n\n" for name in names)
        yield f"{API}/{part}.md", f"# {heading}\n\n{told}"
    if places:
        raise SystemExit(f"tools/site/pages.py: PARTS has no page for {', '.join(places)}")


def screenshots_page(pictures: list[Path]) -> str:
    """What the tests of the dashboard saw."""
    head = "# Screenshots of the dashboard\n\n"
    if not pictures:
        return head + (
            "Before this site was built, no screenshots were taken. Where Chromium is installed, "
            "`TENURE_SCREENSHOTS=build/screenshots make test ARGS=tests/integration/dashboard` "
            "takes them.\n"
        )
    told = "The tests drive the dashboard in a real browser, and take these meanwhile.\n\n"
    names = [(path.stem.replace("-", " ").capitalize(), path.name) for path in pictures]
    return head + told + "\n".join(f"## {it}\n\n![{it}](screenshots/{at})\n" for it, at in names)


def main() -> None:
    """`pages.py FOLDER SCREENSHOTS CONFIGURATION`: lay out, and add the navigation to the file."""
    if missing := unlisted(in_docs((".md",))):
        raise SystemExit(f"the first page of its folder does not list {', '.join(missing)}")
    into, screenshots, configuration = map(Path, sys.argv[1:])
    entries = lay_out(into, screenshots)
    told = (ROOT / "mkdocs.yml").read_text("utf-8")
    configuration.write_text(f"{told}\nnav: {json.dumps(entries)}\n", "utf-8")  # JSON is YAML


if __name__ == "__main__":
    main()
