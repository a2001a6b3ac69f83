"""`tenure docs`: the documents of this very version, as they were installed with it."""

import sys
from difflib import get_close_matches
from pathlib import Path

import tenure
from tenure.cli.output import show
from tenure.errors import TenureError, UsageError

NEAREST = 3


def docs(page: str = "", /) -> None:
    """Read a page of the documents that came with this version, or list them.

    Parameters
    ----------
    page
        Its name, as listed: operating/etcd. The last part is enough if it names only one page.
    """
    pages = all_pages(directory())
    if not page:
        rows = [(name, _title(path)) for name, path in pages.items()]
        show(("page", "title"), rows, empty="no pages")
        return
    text = find(page, pages).read_text("utf-8")
    if sys.stdout.isatty():
        _draw(text)
    else:
        print(text, end="")


def directory() -> Path:
    """Return where the documents are: beside the code in the wheel, beside `src` in a clone."""
    package = Path(tenure.__file__).parent
    for place in (package / "_docs", package.parent.parent / "docs"):
        if (place / "index.md").is_file():
            return place
    raise TenureError(
        f"the documents are not installed: {package} has no _docs. Install the wheel, or a clone"
    )


def all_pages(directory: Path) -> dict[str, Path]:
    """Every page by its name. The first page of a folder has that folder's name."""
    found = {}
    for path in sorted(directory.rglob("*.md")):
        name = path.relative_to(directory).with_suffix("").as_posix()
        found[name.removesuffix("/index")] = path
    return found


def find(page: str, pages: dict[str, Path]) -> Path:
    """The page that is meant. Raises UsageError, which names the nearest."""
    wanted = page.removeprefix("docs/").removesuffix(".md").removesuffix("/index").rstrip("/")
    named = [name for name in pages if name == wanted]
    ending = [name for name in pages if name.rpartition("/")[2] == wanted]
    meant = named or ending
    if len(meant) == 1:
        return pages[meant[0]]
    short = {name.rpartition("/")[2]: name for name in pages}
    alike = get_close_matches(wanted, [*short, *pages], NEAREST, cutoff=0.5)
    near = ending or [short.get(each, each) for each in alike]
    nearest = f"the nearest are {', '.join(dict.fromkeys(near))}; " if near else ""
    problem = f"several pages are called {page!r}: " if ending else f"there is no page {page!r}: "
    raise UsageError(f"{problem}{nearest}`tenure docs` lists all")


def _title(path: Path) -> str:
    return path.read_text("utf-8").partition("\n")[0].removeprefix("# ")


def _draw(text: str) -> None:
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console()
    with console.pager(styles=True):
        console.print(Markdown(text))
