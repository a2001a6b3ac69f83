"""What the product writes only its own user reads, whatever the umask; a secret that others may
read is logged.
"""

import fcntl
import os
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

from tenure.cache.memory_file import MemoryFile
from tenure.columns.engines.directory import LOCK
from tenure.columns.engines.rocksdb import RocksEngine
from tenure.columns.node.node_directory import ROWS, NodeDirectory, read_secret
from tenure.errors import ConfigurationError
from tenure.fencing.databases import SqliteDatabase
from tenure.journals.sqlite.file import prepare
from tenure.protocol.volume.server.events import VolumeMemory
from tenure.runtime import private_files
from tenure.transport.credentials import Credentials
from tenure.wire.lease_records import LEASE_RECORDS
from tests.patience import DEADLINE_SECONDS


@pytest.fixture(params=[0o000, 0o022, 0o777], ids=oct, autouse=True)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode_of(path: Path) -> str:
    return oct(stat.S_IMODE(path.stat().st_mode))


def reached_by_others(place: Path) -> list[str]:
    """The files that another user could read, given the modes of the directories above them."""
    found = []
    for directory, inner, files in os.walk(place):
        inner[:] = [each for each in inner if (Path(directory) / each).stat().st_mode & 0o077]
        found += [each for each in files if (Path(directory) / each).stat().st_mode & 0o077]
    return found


def test_the_directory_of_a_node_is_its_users_alone(tmp_path: Path) -> None:
    place = tmp_path / "n1"
    directory = NodeDirectory.open(place, "mail", Random(1))
    directory.begin_life()
    directory.keep_known(())
    assert mode_of(place) == "0o700"
    assert {mode_of(each) for each in place.iterdir()} == {"0o600"}


def test_the_files_of_an_older_release_are_closed_to_others(tmp_path: Path) -> None:
    NodeDirectory.open(tmp_path / "n1", "mail", Random(1))
    file = tmp_path / "n1" / "node.json"
    file.chmod(0o644)
    NodeDirectory.open(tmp_path / "n1", "mail", Random(1))
    assert mode_of(file) == "0o600"


def test_in_a_directory_that_others_may_enter_they_read_nothing(tmp_path: Path, umask: int) -> None:
    if umask & 0o700:
        pytest.skip("RocksDB itself cannot write there")
    place = tmp_path / "n1"
    place.mkdir()
    place.chmod(0o755)
    NodeDirectory.open(place, "mail", Random(1)).keep_known(())
    RocksEngine.open(place / ROWS).close()
    assert reached_by_others(place) == []


def test_a_store_in_sqlite_is_its_users_alone(tmp_path: Path) -> None:
    path = tmp_path / "rooms.sqlite"
    connection = SqliteDatabase(str(path))._connect()
    connection.execute("CREATE TABLE room (name TEXT)")
    modes = {each.name: mode_of(each) for each in tmp_path.iterdir()}
    connection.close()
    assert modes.keys() >= {"rooms.sqlite", "rooms.sqlite-wal"}
    assert set(modes.values()) == {"0o600"}


def test_the_memory_of_a_volume_is_its_users_alone(tmp_path: Path) -> None:
    MemoryFile(tmp_path / "memory").write(VolumeMemory(number=1, longest_ns=1))
    assert mode_of(tmp_path / "memory") == "0o600"


@pytest.mark.parametrize("before", [None, 0o644])
def test_nobody_else_can_take_the_lock_of_a_volume(tmp_path: Path, before: int | None) -> None:
    """Whoever may read a file may lock it, and then no server starts."""
    lock = tmp_path / "memory.lock"
    if before is not None:
        lock.touch()
        lock.chmod(before)
    memory = MemoryFile(tmp_path / "memory")
    memory.open()
    memory.close()
    assert mode_of(lock) == "0o600"


def test_whoever_may_look_into_a_directory_stops_no_store_from_being_made(
    tmp_path: Path, umask: int
) -> None:
    if umask & 0o700:
        pytest.skip("RocksDB itself cannot write there")
    directory = os.open(tmp_path, os.O_RDONLY)
    with ThreadPoolExecutor(1) as pool:
        try:
            fcntl.flock(directory, fcntl.LOCK_EX)
            pool.submit(RocksEngine.open, tmp_path).result(DEADLINE_SECONDS).close()
        finally:
            os.close(directory)
    assert mode_of(tmp_path / LOCK) == "0o600"


def test_a_lock_that_leads_elsewhere_is_not_taken(tmp_path: Path) -> None:
    other = tmp_path / "of-somebody-else"
    other.touch()
    (tmp_path / "memory.lock").symlink_to(other)
    with pytest.raises(ConfigurationError, match="cannot be written"):
        MemoryFile(tmp_path / "memory").open()


def test_a_file_that_another_has_made_beforehand_is_not_written(tmp_path: Path) -> None:
    """It has the file open, and would read and change whatever is written there."""
    new, target = tmp_path / "memory.new", tmp_path / "of-somebody-else"
    new.write_bytes(b"")
    with new.open("rb") as watched:
        private_files.overwrite(new, b"secret")
        assert watched.read() == b""
    target.write_bytes(b"theirs")
    new.unlink()
    new.symlink_to(target)
    private_files.overwrite(new, b"secret")
    assert (new.read_bytes(), target.read_bytes()) == (b"secret", b"theirs")
    os.link(target, hard := tmp_path / "hard")
    private_files.overwrite(hard, b"secret")
    assert target.read_bytes() == b"theirs"


def test_it_is_told_where_other_users_can_replace_what_a_process_believes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, umask: int
) -> None:
    if umask & 0o700:
        pytest.skip("SQLite itself cannot write there")
    path = tmp_path / "open" / "journal.sqlite"
    path.parent.mkdir()
    path.parent.chmod(0o777)
    prepare(path, LEASE_RECORDS)
    assert f"chmod o-w {path.parent}" in caplog.text
    caplog.clear()
    memory = MemoryFile(path.parent / "memory")
    memory.open()
    memory.close()
    assert f"chmod o-w {path.parent}" in caplog.text
    caplog.clear()
    (node := path.parent / "node").mkdir()
    node.chmod(0o777)
    NodeDirectory.open(node, "mail", Random(1))
    assert f"chmod o-w {node}" in caplog.text
    caplog.clear()
    path.parent.chmod(0o1777)  # there nobody replaces files of others
    prepare(path, LEASE_RECORDS)
    assert caplog.messages == []


def test_directories_that_are_made_on_the_way_are_written_by_nobody_else(
    tmp_path: Path, umask: int
) -> None:
    if umask & 0o700:
        pytest.skip("nobody can write there")
    prepare(tmp_path / "a" / "b" / "journal.sqlite", LEASE_RECORDS)
    private_files.make_directory(tmp_path / "c" / "d" / "node")
    for name in ("a", "a/b", "c", "c/d"):
        assert not (tmp_path / name).stat().st_mode & stat.S_IWOTH, name


def test_a_journal_that_others_may_read_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, umask: int
) -> None:
    """A copy that was put back often is: whoever reads it can speak for owners of every pool."""
    if umask & 0o700:
        pytest.skip("SQLite itself cannot write there")
    path = tmp_path / "journal.sqlite"
    prepare(path, LEASE_RECORDS)
    assert caplog.messages == []
    path.chmod(0o644)
    prepare(path, LEASE_RECORDS)
    assert f"chmod 600 {path}" in caplog.text


def test_what_there_is_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "shared.sqlite"
    file.touch()
    file.chmod(0o660)
    private_files.make_file(file)
    assert mode_of(file) == "0o660"


@pytest.mark.parametrize(("mode", "is_told"), [(0o600, False), (0o640, False), (0o644, True)])
def test_a_secret_that_every_user_may_read_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int, is_told: bool
) -> None:
    secret, token = tmp_path / "secret", tmp_path / "token"
    private_files.overwrite(secret, b"5" * 64)
    private_files.overwrite(token, b"tenure_" + b"a" * 52)
    secret.chmod(mode)
    token.chmod(mode)
    read_secret(secret)
    Credentials(token_file=token)
    told = [f"chmod 600 {each}" for each in (secret, token) if is_told]
    assert [each.rpartition(": ")[2] for each in caplog.messages] == told
