"""The file of tokens: drawing, keeping, reading again; and what each role allows."""

import fcntl
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tenure.errors import ConfigurationError
from tenure.manager.access.roles import ANYBODY, AccessRole, Permit
from tenure.manager.access.tokens import TokenFile, new_token
from tenure.protocol.lease.messages import Attested, Hello, Process, Sync
from tests.patience import DEADLINE_SECONDS

OWNER, LOOKUP, VIEWER, ADMIN, NODE, STORE = AccessRole
A_PROCESS = Process(boot_id="b", pid_namespace=1, time_namespace=1, pid=1, start_time=1)


def test_a_token_is_taken_by_its_text_and_nothing_close_to_it(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens")
    token = new_token(OWNER, "rooms", "of ann")
    tokens.add(token.entry)
    assert tokens.permit(token.text) == Permit(token.entry.id, OWNER, "rooms")
    other = new_token(OWNER, "rooms")
    for wrong in ("", "tenure_", token.text[:-1], token.text + "a", token.text.upper(), other.text):
        assert tokens.permit(wrong) is None
    borrowed = token.text.split("_")[1].join(("tenure_", "_" + other.text.split("_", 2)[2]))
    assert tokens.permit(borrowed) is None  # the id of one, the secret of another


def test_the_file_has_no_token_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    token = new_token(ADMIN)
    TokenFile(path).add(token.entry)
    assert token.text.split("_", 2)[2] not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_is_added_and_removed_is_seen_by_who_reads_it_again(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    first, second = new_token(VIEWER), new_token(LOOKUP, "rooms")
    TokenFile(path).add(first.entry)
    manager = TokenFile(path)
    manager.load()
    assert not manager.load_if_changed()
    TokenFile(path).add(second.entry)
    assert manager.load_if_changed()
    assert manager.entries == (first.entry, second.entry)
    TokenFile(path).remove(first.entry.id)
    assert manager.load_if_changed()
    assert manager.permit(first.text) is None
    assert manager.permit(second.text) == second.entry.permit


class Clock:
    """Turned by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_file_that_is_written_in_place_is_read_when_it_is_whole(tmp_path: Path) -> None:
    """An empty moment, or half of the lines, would take tokens away from connected clients."""
    path, clock = tmp_path / "tokens", Clock()
    first, second = new_token(VIEWER), new_token(ADMIN)
    for token in (first, second):
        TokenFile(path).add(token.entry)
    whole = path.read_bytes()
    manager = TokenFile(path, clock)
    manager.load()
    for part in (b"", whole[: whole.index(b"\n") + 1], whole + b"\n"):
        path.write_bytes(part)
        clock.now += 0.9
        assert not manager.load_if_changed()
        assert manager.entries == (first.entry, second.entry)
    clock.now += 0.9
    assert not manager.load_if_changed()
    clock.now += 0.1
    assert manager.load_if_changed()
    path.write_bytes(b"")  # and it stays so: somebody means it
    assert not manager.load_if_changed()
    clock.now += 1
    assert manager.load_if_changed()
    assert manager.entries == ()


def test_a_changed_file_keeps_who_may_read_it(tmp_path: Path) -> None:
    """The manager often runs as another user than the one who makes tokens."""
    path = tmp_path / "tokens"
    tokens = TokenFile(path)
    tokens.add(new_token(ADMIN).entry)
    path.chmod(0o640)
    if os.getuid() == 0:
        os.chown(path, 12, 34)
    before = path.stat()
    tokens.add(new_token(ADMIN).entry)
    after = path.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )


def test_of_tokens_that_are_made_at_once_none_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    made = [new_token(ADMIN).entry for _ in range(24)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda entry: TokenFile(path).add(entry), made))
    tokens = TokenFile(path)
    tokens.load()
    assert sorted(tokens.entries, key=str) == sorted(made, key=str)


def test_whoever_may_look_into_the_directory_stops_no_token_from_being_revoked(
    tmp_path: Path,
) -> None:
    path = tmp_path / "tokens"
    token = new_token(ADMIN)
    TokenFile(path).add(token.entry)
    directory = os.open(tmp_path, os.O_RDONLY)
    with ThreadPoolExecutor(1) as pool:
        try:
            fcntl.flock(directory, fcntl.LOCK_EX)
            removing = pool.submit(TokenFile(path).remove, token.entry.id)
            assert removing.result(DEADLINE_SECONDS) == token.entry
        finally:
            os.close(directory)


@pytest.mark.parametrize(
    "broken", ["{", "[]", '{"id": "a"}', "\xff", '{"id": "a", "role": "king"}']
)
def test_a_file_that_cannot_be_read_changes_nothing(tmp_path: Path, broken: str) -> None:
    path = tmp_path / "tokens"
    token = new_token(ADMIN)
    TokenFile(path).add(token.entry)
    clock = Clock()
    manager = TokenFile(path, clock)
    manager.load()
    path.write_bytes(broken.encode("latin-1"))
    assert not manager.load_if_changed()
    clock.now += 2
    assert not manager.load_if_changed()
    path.unlink()
    assert not manager.load_if_changed()
    assert manager.permit(token.text) == token.entry.permit
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        manager.load()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"id":"a","sha256":"b","role":"owner","created":"c"}', "role owner and the pool"),
        ('{"id":"a","sha256":"b","role":"admin","created":"c","pool":"p"}', "role admin and the"),
        ('{"id":"a","sha256":"b","role":"admin","created":"c","color":"red"}', "line 1 is not"),
        ('{"id":"a","sha256":"b","role":"admin","created":"c"}\n' * 2, "line 2: the id a stands"),
    ],
)
def test_a_line_that_is_no_token_is_named(tmp_path: Path, line: str, why: str) -> None:
    path = tmp_path / "tokens"
    path.write_text(line)
    with pytest.raises(ConfigurationError, match=why):
        TokenFile(path).load()


def test_a_role_and_its_pool_belong_together() -> None:
    with pytest.raises(ConfigurationError, match="role owner is for one pool: name it"):
        new_token(OWNER)
    with pytest.raises(ConfigurationError, match="role viewer is for all pools: leave the pool"):
        new_token(VIEWER, "rooms")
    assert new_token(ADMIN, note="n" * 200).entry.note == "n" * 200
    for note in ("\n", "n" * 201):
        with pytest.raises(ConfigurationError, match="a note is at most 200"):
            new_token(ADMIN, note=note)


def test_what_cannot_be_written_is_said_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be written"):
        TokenFile(tmp_path / "missing" / "tokens").add(new_token(ADMIN).entry)
    path = tmp_path / "tokens"
    path.touch()
    with pytest.raises(ConfigurationError, match="has no token 'x'; there are: none"):
        TokenFile(path).remove("x")
    assert list(tmp_path.iterdir()) == [path]


# The table in `roles`, as it stands there: read of its pool, of another, of the manager, own, look
# up, change.
ALLOWED = {
    Permit("a", OWNER, "rooms"): (True, False, False, True, True, False),
    Permit("a", LOOKUP, "rooms"): (True, False, False, False, True, False),
    Permit("a", VIEWER): (True, True, True, False, False, False),
    Permit("a", NODE): (False, False, False, False, False, False),
    Permit("a", STORE): (False, False, False, False, False, False),
    Permit("a", ADMIN): (True, True, True, True, True, True),
    ANYBODY: (True, True, True, True, True, True),
}


@pytest.mark.parametrize("permit", ALLOWED, ids=str)
def test_a_role_allows_what_its_table_says(permit: Permit) -> None:
    assert ALLOWED[permit] == (
        permit.may_read("rooms"),
        permit.may_read("carts"),
        permit.may_read(None),
        permit.may_own,
        permit.may_look_up,
        permit.may_change,
    )


@pytest.mark.parametrize("permit", ALLOWED, ids=str)
def test_services_are_for_roles_in_their_pool_and_rows_for_those_of_the_store(
    permit: Permit,
) -> None:
    is_admin = permit.role is ADMIN
    for pool in ("rooms", "carts"):
        assert permit.may_use(pool) == (is_admin or permit.pool == pool)
    assert permit.may_keep_rows == (is_admin or permit.role in (NODE, STORE))
    assert permit.may_be_node == (is_admin or permit.role is NODE)


@pytest.mark.parametrize("permit", ALLOWED, ids=str)
def test_a_client_says_only_what_its_role_and_its_pool_allow(permit: Permit) -> None:
    _, _, _, owns, looks_up, _ = ALLOWED[permit]
    for pool in ("rooms", "carts"):
        is_its_own = permit.pool in ("", pool)
        sync = Sync(pool=pool, sequence=1, journal=0, leadership=0, lsn=0, nonce=9)
        attested = Attested(
            pool=pool,
            incarnation=1,
            process=A_PROCESS,
            witness=A_PROCESS,
            owner_nonce=1,
            manager_nonce=1,
        )
        assert permit.may_say(sync) == (looks_up and is_its_own)
        assert permit.may_say(Hello(pool=pool, token=7)) == (owns and is_its_own)
        assert permit.may_say(attested) == (owns and is_its_own)
