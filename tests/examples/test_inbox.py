"""The example `inbox.py`, which the guide shows too: a mailbox with search that lasts."""

import subprocess
import sys
from pathlib import Path

from tests.repo.reading import ROOT

EXAMPLE = ROOT / "examples" / "inbox.py"


def inbox(path: Path, *arguments: str) -> list[str]:
    command = [sys.executable, str(EXAMPLE), f"rocksdb:{path}", *arguments]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    return found.stdout.splitlines()


def test_the_guide_shows_the_example_which_has_fewer_than_40_lines() -> None:
    shown = EXAMPLE.read_text("utf-8").split('"""', 2)[2].lstrip()
    assert shown in (ROOT / "docs" / "guides" / "keeping-rows.md").read_text("utf-8")
    assert len(shown.splitlines()) < 40


def test_mails_are_found_by_word_and_by_person_after_kill_9(tmp_path: Path) -> None:
    texts = ["tea at four?", "no tea today", "milk?"]
    for text in texts:
        command = [sys.executable, "-u", str(EXAMPLE), f"rocksdb:{tmp_path}", "send", "ann", "bob"]
        with subprocess.Popen([*command, text], stdout=subprocess.PIPE, text=True) as sending:
            assert sending.stdout is not None
            assert sending.stdout.readline() == "kept\n"
            sending.kill()
    assert inbox(tmp_path, "search", "bob", "tea") == texts[1::-1]
    assert inbox(tmp_path, "between", "ann", "bob") == texts[::-1]
    assert inbox(tmp_path, "search", "eve", "tea") == []
