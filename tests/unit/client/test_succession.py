"""When a process sees that another is about to take its place."""

import os
from pathlib import Path

import pytest

from tenure.client.succession import has_successor

TICKS = os.sysconf("SC_CLK_TCK")


def processes(proc: Path, now: float, *others: tuple[int, float, str]) -> Path:
    """A `/proc` of this process, which began at second 100 and has parent 7, and of others."""

    def put(name: str, parent: int, began: float, state: str) -> None:
        (proc / name).mkdir()
        fields = [state, str(parent), *("0",) * 17, str(int(began * TICKS)), "0"]
        (proc / name / "stat").write_text(f"{name} (a) b) {' '.join(fields)}\n")

    (proc / "uptime").write_text(f"{now:.2f} 1.0\n")
    put("self", 7, 100.0, "R")
    put("50", 7, 100.0, "R")
    for number, (parent, began, state) in enumerate(others, 60):
        put(str(number), parent, began, state)
    return proc


@pytest.mark.parametrize(
    ("now", "other", "expected"),
    [
        (500.0, (7, 499.0, "S"), True),
        (500.0, (7, 471.0, "S"), True),
        (500.0, (7, 469.0, "S"), False),  # long ago
        (101.5, (7, 101.0, "S"), False),  # begun together with this one
        (500.0, (8, 499.0, "S"), False),  # another's child
        (500.0, (7, 499.0, "Z"), False),  # it has ended
    ],
)
def test_a_successor_is_a_late_child_of_the_same_parent(
    tmp_path: Path, now: float, other: tuple[int, float, str], *, expected: bool
) -> None:
    assert has_successor(proc=processes(tmp_path, now, other)) is expected


def test_who_waits_for_it_sees_it_for_as_long(tmp_path: Path) -> None:
    """It was begun a moment before this one began to wait, and takes long to start."""
    proc = processes(tmp_path, 500.0, (7, 455.0, "S"))
    assert has_successor(20.0, proc)
    assert not has_successor(10.0, proc)


def test_where_nothing_can_be_seen_there_is_none(tmp_path: Path) -> None:
    assert not has_successor(proc=tmp_path / "nothing")
    (processes(tmp_path, 500.0) / "61").mkdir()  # gone while it is looked at
    assert not has_successor(proc=tmp_path)
