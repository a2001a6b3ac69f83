"""The quick start shows its two programs whole; the README shows the heart of the owner, and of the
chat room.
"""

from tests.repo.reading import ROOT
from tests.repo.test_prose import python_fences

EXAMPLES = ROOT / "examples" / "quickstart"
PROGRAMS = ("owner.py", "client.py")


def shown(path: str) -> list[str]:
    return [program for _, program in python_fences((ROOT / path).read_text("utf-8"))]


def in_files() -> list[str]:
    return [(EXAMPLES / name).read_text("utf-8") for name in PROGRAMS]


def statements(text: str) -> list[str]:
    """Its lines, without comments, indentation and the types of arguments."""
    plain = (line.partition("  #")[0].strip() for line in text.splitlines())
    untyped = (
        line.replace(": web.Request", "").replace(" -> web.Response", "").rstrip() for line in plain
    )
    return [line for line in untyped if line]


def is_part(part: list[str], whole: list[str]) -> bool:
    return any(whole[at : at + len(part)] == part for at in range(len(whole)))


def test_the_quick_start_shows_the_programs_that_run() -> None:
    assert shown("docs/start/quick-start.md") == in_files()


def test_the_owner_in_the_readme_is_the_one_that_runs() -> None:
    owner = next(each for each in shown("README.md") if "owner.holds(stored)" in each)
    assert is_part(statements(owner), statements(in_files()[0]))


def test_the_chat_room_in_the_readme_is_the_one_that_runs() -> None:
    room = next(each for each in shown("README.md") if "Entity[Lines]" in each)
    whole = statements((ROOT / "examples" / "chat.py").read_text("utf-8"))
    parts = [statements(each) for each in room.split("\n\n\n")]
    assert len(parts) == 3
    assert [each for each in parts if not is_part(each, whole)] == []


def test_a_line_that_differs_is_found() -> None:
    assert is_part(["b", "c"], ["a", "b", "c"])
    assert not is_part(["a", "c"], ["a", "b", "c"])
