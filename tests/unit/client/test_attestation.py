"""The attestation reads a `/proc` that is made here as it may look. Integration tests have real
processes.
"""

import os
from pathlib import Path

import pytest

from tenure.client.attestation import look, own_process
from tenure.protocol.lease.messages import Process

PID = os.getpid()
NAMES = ["python", "a) Z (b", "))", ") S 1 (", "z z z z z z z z"]
SUSPECT = Process(boot_id="boot", pid_namespace=1, time_namespace=1, pid=4711, start_time=123)


def stat(name: str, state: str, start_time: object) -> str:
    between = " ".join(str(i) for i in range(4, 22))
    return f"{PID} ({name}) {state} {between} {start_time} 23 24 25\n"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A /proc with this process in it."""
    for folder in ("sys/kernel/random", "self/ns"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "sys/kernel/random/boot_id").write_text("0bd9ad35-efd9\n")
    (tmp_path / "self/ns/pid").touch()
    (tmp_path / "self/ns/time").touch()
    (tmp_path / "self/status").write_text(f"Name:\tpython\nNSpid:\t{PID}\nUid:\t0\n")
    (tmp_path / "self/stat").write_text(stat("python", "R", 987654))
    return tmp_path


def put(proc: Path, state: str, start_time: object = 123, threads: tuple[int, ...] = ()) -> None:
    """Somebody has the suspect's pid."""
    folder = proc / str(SUSPECT.pid)
    folder.mkdir()
    (folder / "stat").write_text(stat("python", state, start_time))
    for thread in threads:
        (folder / "task" / str(thread)).mkdir(parents=True)


@pytest.mark.parametrize("name", NAMES)
def test_a_process_finds_itself_whatever_its_name(proc: Path, name: str) -> None:
    (proc / "self/stat").write_text(stat(name, "R", 987654))
    pids, times = ((proc / "self/ns" / each).stat().st_ino for each in ("pid", "time"))
    assert own_process(proc) == Process(
        boot_id="0bd9ad35-efd9",
        pid_namespace=pids,
        time_namespace=times,
        pid=PID,
        start_time=987654,
    )


@pytest.mark.parametrize(
    "missing",
    ["sys/kernel/random/boot_id", "self/ns/pid", "self/ns/time", "self/status", "self/stat"],
)
def test_what_cannot_be_read_makes_no_process(proc: Path, missing: str) -> None:
    (proc / missing).unlink()
    assert own_process(proc) is None


@pytest.mark.parametrize(
    "status",
    ["Name:\tpython\n", f"NSpid:\t99999\t{PID}\n", "NSpid:\t99999\n", "NSpid:\tx\n"],
    ids=["none", "two", "another", "no number"],
)
def test_the_pids_of_another_namespace_make_no_process(proc: Path, status: str) -> None:
    (proc / "self/status").write_text(status)
    assert own_process(proc) is None


@pytest.mark.parametrize(
    "text",
    ["", "1 (python", "1 (python) R", stat("python", "R", "x")],
    ids=["empty", "cut off", "no numbers", "no number"],
)
def test_a_damaged_stat_shows_nothing(proc: Path, text: str) -> None:
    (proc / "self/stat").write_text(text)
    assert own_process(proc) is None
    put(proc, "R")
    (proc / str(SUSPECT.pid) / "stat").write_text(text)
    assert look(SUSPECT, proc).start_time is None


def test_who_sees_itself_nowhere_says_so(proc: Path) -> None:
    (proc / "self/ns/time").unlink()
    assert look(SUSPECT, proc).seen_from is None


@pytest.mark.parametrize(
    ("state", "threads", "seen"),
    [
        ("S", (), (123, False, None)),
        ("T", (), (123, False, None)),
        ("Z", (4711,), (123, True, False)),
        ("X", (4711,), (123, True, False)),
        ("Z", (4711, 4712), (123, True, True)),
        ("Z", (4712,), (123, True, None)),
        ("Z", (), (123, True, None)),
    ],
)
def test_the_state_and_the_task_list_are_looked_at(
    proc: Path, state: str, threads: tuple[int, ...], seen: tuple[int, bool, bool | None]
) -> None:
    put(proc, state, threads=threads)
    sight = look(SUSPECT, proc)
    assert (sight.start_time, sight.first_thread_ended, sight.has_other_threads) == seen


def test_a_pid_that_no_system_has_is_neither_there_nor_not(proc: Path) -> None:
    nowhere = Process(
        boot_id="boot", pid_namespace=1, time_namespace=1, pid=(1 << 63) - 1, start_time=123
    )
    assert look(nowhere, proc).is_there is None


def test_without_pidfds_nothing_is_known(proc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    assert look(SUSPECT, proc).is_there is None
