"""A manager with TLS and tokens, and all its clients: owners, lookups, commands."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tenure import Credentials, KeyedState, Lookup, NoManager, Owner
from tenure.manager.access.roles import AccessRole
from tenure.manager.access.tokens import TokenFile, new_token
from tests.certificates import Authority
from tests.integration.processes import command, manager
from tests.patience import DEADLINE_SECONDS, until

OWNER, LOOKUP, VIEWER, ADMIN, NODE, STORE = AccessRole


class Guarded:
    """The files of a guarded manager, and its URL."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.authority = Authority(directory)
        self.server = self.authority.sign("server")
        self.tokens = TokenFile(directory / "tokens")
        self.url = ""

    def shows(self, role: AccessRole, pool: str = "") -> Credentials:
        return Credentials(token=self.text(role, pool), ca=self.authority.file)

    def text(self, role: AccessRole, pool: str = "") -> str:
        token = new_token(role, pool)
        self.tokens.add(token.entry)
        return token.text

    def run(self, *arguments: str, role: AccessRole = ADMIN) -> subprocess.CompletedProcess[str]:
        pool = "rooms" if role.is_of_a_pool else ""
        token = self.text(role, pool)
        told = {"TENURE_TOKEN": token, "TENURE_CA": str(self.authority.file)}
        return subprocess.run(
            command(*arguments, "--manager", self.url),
            check=False,
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
            env={**os.environ, **told},
        )


@contextmanager
def guarded(directory: Path, *more: str) -> Iterator[Guarded]:
    scene = Guarded(directory)
    scene.text(ADMIN)
    files = ("--tls-cert", str(scene.server.cert), "--tls-key", str(scene.server.key))
    tokens = ("--tokens", str(scene.tokens.path), "--audit-log", str(directory / "audit"))
    # Terms of the default preset outlast a stall of a busy machine, which would lose a lease.
    with manager(*files, *tokens, "--first-start", *more, preset="default") as process:
        scene.url = str(process.wait_for("listening")["url"])
        yield scene
        process.send(signal.SIGTERM)
        assert process.end() == 0


async def held(owner: Owner, key: str) -> None:
    await until(lambda: owner.check(key) is not None)


@pytest.mark.asyncio
async def test_owners_hand_over_and_lookups_follow_with_tls_all_the_way(tmp_path: Path) -> None:
    with guarded(tmp_path) as scene:
        mine = scene.authority.sign("mine")
        told = Credentials(
            token=scene.text(OWNER, "rooms"),
            ca=scene.authority.file,
            cert=mine.cert,
            key=mine.key,
            mutual=True,
        )
        first, second = KeyedState(value_type=str), KeyedState(value_type=str)

        def owner(state: KeyedState[str], name: str) -> Owner:
            return Owner(
                scene.url,
                pool="rooms",
                address=f"http://127.0.0.1/{name}",
                name=name,
                hand_off=state,
                credentials=told,
            )

        shows = scene.shows(LOOKUP, "rooms")
        async with owner(first, "ann") as ann:
            await held(ann, "key")
            first["key"] = "kept"
            async with (
                Lookup(scene.url, pool="rooms", credentials=shows) as lookup,
                owner(second, "bob") as bob,
            ):
                await ann.close(drain=DEADLINE_SECONDS)
                await held(bob, "key")
                assert second["key"] == "kept"
                await until(lambda: lookup.find("key") == "http://127.0.0.1/bob")


async def refusal(url: str, credentials: Credentials, why: str) -> str:
    """Return what a lookup is told: an answer must come before it gives up, so its
    patience grows.
    """
    said = ""
    for patience in (1, 4, 16):
        lookup = Lookup(url, pool="rooms", credentials=credentials, enter_timeout=patience)
        with pytest.raises(NoManager) as refused:
            await lookup.__aenter__()
        said = str(refused.value)
        if re.search(why, said):
            break
    return said


@pytest.mark.asyncio
async def test_who_may_not_come_in_is_told_why(tmp_path: Path) -> None:
    with guarded(tmp_path) as scene:
        ca = scene.authority.file
        for credentials, why in (
            (Credentials(ca=ca), "it wants a token that counts: set TENURE_TOKEN"),
            (Credentials(ca=ca, token="tenure_no_such"), "it wants a token that counts"),  # noqa: S106
            (scene.shows(VIEWER), "the token is for another role, or another pool"),
            (scene.shows(LOOKUP, "carts"), "is not for 'rooms'"),
            (Credentials(token=scene.text(ADMIN)), "TLS failed: .*certificate"),
        ):
            assert re.search(why, await refusal(scene.url, credentials, why))


def test_commands_show_what_the_environment_names(tmp_path: Path) -> None:
    with guarded(tmp_path) as scene:
        made = scene.run("pool", "create", "rooms", "--kind", "hashed")
        assert (made.returncode, made.stdout) == (0, "pool rooms (hashed) created\n")
        refused = scene.run("freeze", "rooms", role=VIEWER)
        assert refused.returncode == 2
        assert "role viewer" in refused.stderr or "viewer does not allow" in refused.stderr
        stranger = scene.run("pool", "list", role=OWNER)
        assert stranger.returncode == 2
        written = (tmp_path / "audit").read_text()
        assert '"path":"/v1/pools"' in written
        assert '"status":201' in written
