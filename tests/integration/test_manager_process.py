"""Managers as processes: taking over, restarting, stopping, and refusing to start."""

import asyncio
import json
import os
import signal
import socket
import sqlite3
import stat
import subprocess
from collections.abc import Callable, Coroutine
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.integration.owner import WireOwner
from tests.integration.processes import command, manager, run
from tests.patience import DEADLINE_SECONDS


def within_deadline(story: Callable[[], Coroutine[None, None, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(DEADLINE_SECONDS):
            await story()

    asyncio.run(bounded())


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal.sqlite"


# --- leading, standing by, taking over ------------------------------------------------------------


def test_when_the_leader_is_killed_the_standby_takes_over_and_leases_go_on(journal: Path) -> None:
    with ExitStack() as processes:
        first = processes.enter_context(manager("--first-start", journal=journal, preset="default"))
        url = first.wait_for("listening")["url"]
        assert first.wait_for("leading")["leadership"] == 1
        second = processes.enter_context(manager(journal=journal, preset="default"))
        other = second.wait_for("listening")["url"]
        assert second.wait_for("standing by")["leader"] == url

        async def story() -> None:
            owner = WireOwner()
            async with owner.connected(url):
                await owner.own_everything()
            before = [(lease.start, lease.end, lease.number) for lease in owner.leases]
            first.send(signal.SIGKILL)
            leading = await asyncio.to_thread(second.wait_for, "leading")
            assert leading == {"event": "leading", "leadership": 2, "grants_in_seconds": 0.0}
            async with owner.connected(other):
                await owner.renew()
                after = [(lease.start, lease.end, lease.number) for lease in owner.leases]
                assert (after, {lease.mark for lease in owner.leases}) == (before, {"renewed"})

        within_deadline(story)
        assert first.end() == -signal.SIGKILL


def test_a_restart_on_the_same_journal_keeps_the_leases(journal: Path) -> None:
    owner = WireOwner()
    with manager("--first-start", journal=journal, preset="default") as first:
        url = first.wait_for("listening")["url"]
        first.wait_for("leading")

        async def before() -> None:
            async with owner.connected(url):
                await owner.own_everything()

        within_deadline(before)
        numbers = [lease.number for lease in owner.leases]
        first.send(signal.SIGKILL)
    with manager(journal=journal, preset="default") as second:
        url = second.wait_for("listening")["url"]
        second.wait_for("leading")

        async def after() -> None:
            async with owner.connected(url):
                await owner.renew()

        within_deadline(after)
        assert [lease.number for lease in owner.leases] == numbers


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_resigns_so_that_the_next_need_not_wait(
    journal: Path, number: signal.Signals
) -> None:
    with manager(journal=journal) as first:
        first.wait_for("leading")
        first.send(number)
        first.wait_for("stopped")
        assert first.end() == 0
    with closing(sqlite3.connect(journal)) as connection:
        assert connection.execute("SELECT leadership, manager FROM seat").fetchone() == (1, "")


def test_a_journal_without_records_waits_and_says_so_and_first_start_does_not(
    journal: Path,
) -> None:
    with manager(journal=journal) as first:
        waits = first.wait_for("leading")["grants_in_seconds"]
        assert 60 < waits <= 65
    with manager("--first-start") as second:
        assert second.wait_for("leading")["grants_in_seconds"] <= 1


def test_who_stops_in_the_wait_can_still_say_first_start_and_a_successor_need_not(
    journal: Path,
) -> None:
    with manager(journal=journal, preset="paper") as first:
        assert first.wait_for("leading")["grants_in_seconds"] > 60
        first.send(signal.SIGTERM)
        first.wait_for("stopped")
    with manager("--first-start", journal=journal, preset="paper") as second:
        # it listens this long, because an owner with the history of another journal may come
        assert second.wait_for("leading")["grants_in_seconds"] <= 2
        assert second.wait_for("leading")["grants_in_seconds"] == 0
        second.send(signal.SIGTERM)
        second.wait_for("stopped")
    with manager(journal=journal, preset="paper") as third:
        assert third.wait_for("leading")["grants_in_seconds"] == 0


def test_lines_for_people_name_the_url_the_journal_the_preset_and_the_wait(tmp_path: Path) -> None:
    arguments = ["manager", "--port", "0", "--state-dir", str(tmp_path), "--log-level", "error"]
    with subprocess.Popen(command(*arguments), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            lines = [process.stdout.readline() for _ in range(6)]
            process.terminate()
            rest = process.stdout.read()
        finally:
            process.kill()
    assert "manager at http://127.0.0.1:" in lines[0]
    assert lines[1] == f"  journal: sqlite:{tmp_path}/journal.sqlite\n"
    assert lines[2] == "  preset:  default (term 12 s, hold 13 s)\n"
    assert lines[4] == "leader (leadership 1), not granting leases yet:\n"
    assert "up to 65.0 s" in lines[5]
    assert "--first-start" in lines[5]
    assert rest.splitlines()[-1] == "stopped"


def test_the_commands_find_a_manager_in_another_process() -> None:
    with manager("--first-start") as running:
        url = running.wait_for("listening")["url"]
        running.wait_for("leading")
        created = run(
            *("pool", "create", "docs", "--kind", "ordered", "--split", "g"), TENURE_MANAGERS=url
        )
        assert created.returncode == 0, created.stderr
        table = run("table", "docs", "--json", "--manager", url)
        assert json.loads(table.stdout)["kind"] == "ordered"


# --- refusing to start ----------------------------------------------------------------------------


def test_a_port_in_use_is_refused_and_no_journal_is_made(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = run("manager", "--port", str(port), "--state-dir", str(tmp_path / "state"))
    assert ran.returncode == 2
    assert ran.stderr.startswith(f"tenure: port {port} on 127.0.0.1 is in use: ")
    assert not (tmp_path / "state").exists()


def written(journal: Path) -> None:
    with manager("--first-start", journal=journal) as running:
        running.wait_for("leading")
        running.send(signal.SIGTERM)
        running.wait_for("stopped")
        running.end()


def refused(journal: Path) -> str:
    """Try to start a manager; what it says, having touched nothing."""
    before = {path.name: path.read_bytes() for path in journal.parent.iterdir()}
    ran = run("manager", "--port", "0", "--journal", f"sqlite:{journal}")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "Traceback" not in ran.stderr
    assert {path.name: path.read_bytes() for path in journal.parent.iterdir()} == before
    return ran.stderr


def test_a_damaged_journal_is_refused(journal: Path) -> None:
    written(journal)
    data = bytearray(journal.read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    journal.write_bytes(data)
    assert refused(journal).startswith(f"tenure: the journal {journal} ")


def test_a_journal_of_a_newer_version_is_refused(journal: Path) -> None:
    written(journal)
    with closing(sqlite3.connect(journal)) as connection:
        connection.execute("PRAGMA user_version = 99")
    assert "of version 99, and this tenure reads 1" in refused(journal)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_journal_that_cannot_be_written_is_refused(journal: Path) -> None:
    written(journal)
    journal.chmod(stat.S_IRUSR)
    assert "cannot be written" in refused(journal)


def test_a_journal_where_none_can_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ran = run("manager", "--port", "0", "--journal", f"sqlite:{tmp_path}/file/journal.sqlite")
    assert ran.returncode == 1
    assert "cannot be made" in ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_configuration_file_that_is_wrong_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "tenure.toml"
    file.write_text("prot = 7400")
    ran = run("manager", "--config", str(file), "--state-dir", str(tmp_path))
    assert ran.returncode == 2
    assert ran.stderr.startswith(f"tenure: {file}: there is no setting 'prot'; did you mean port")
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_a_journal_that_is_deleted_under_a_manager_ends_it_with_the_reason(journal: Path) -> None:
    with manager(journal=journal) as running:
        running.wait_for("leading")
        journal.unlink()
        assert running.end() == 1
        assert f"the journal {journal} was deleted or replaced" in running.log
        assert "Traceback" not in running.log


def test_an_address_that_others_reach_is_refused() -> None:
    ran = run("manager", "--host", "0.0.0.0", "--port", "0", "--journal", "memory")  # noqa: S104
    assert ran.returncode == 2
    assert "--insecure" in ran.stderr
