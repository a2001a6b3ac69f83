"""`tenure token`: a token is printed once, listed without its text, and removed."""

import json
from pathlib import Path

import pytest

from tenure.cli.app import run


def test_a_token_is_printed_once_and_its_line_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "tokens")

    def said(*words: str) -> str:
        assert run(["token", *words, "--file", file]) == 0
        return capsys.readouterr().out

    text = said("new", "--role", "owner", "--pool", "rooms", "--note", "of ann").strip()
    which = text.split("_")[1]
    assert text not in (listed := said("list"))
    assert listed.splitlines()[1].startswith(f"{which}\towner\trooms\t")
    made = json.loads(said("new", "--role", "admin", "--json"))
    assert made["token"].startswith(f"tenure_{made['id']}_")
    assert said("remove", which) == f"token {which} (owner of rooms) is no longer valid\n"
    assert [each["id"] for each in json.loads(said("list", "--json"))] == [made["id"]]
    assert json.loads(said("remove", made["id"], "--json"))["role"] == "admin"
    assert said("list") == "id\trole\tpool\tcreated\tnote\n"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["new", "--role", "owner"], "the role owner is for one pool"),
        (["new", "--role", "admin", "--pool", "rooms"], "the role admin is for all pools"),
        (["remove", "none"], "cannot be read"),
        (["list"], "cannot be read"),
        (["new", "--role", "king"], "king"),
    ],
)
def test_what_cannot_be_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], why: str
) -> None:
    assert run(["token", *words, "--file", str(tmp_path / "tokens")]) == 2
    assert why in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
