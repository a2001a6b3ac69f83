"""Tests of who may speak with etcd: users and their tokens, TLS, client certificates."""

import shutil
import subprocess
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import pytest

from tenure.errors import ConfigurationError, JournalError, JournalUnwritable
from tenure.journals.etcd.journal import EtcdJournal
from tenure.journals.etcd.wire import after_prefix
from tenure.protocol.lease.records import AnyRecord, State
from tenure.protocol.log.journal import Committed
from tenure.testing.contracts.journal import lead
from tenure.testing.contracts.records import A_STATE, numbered
from tests.integration.etcd.servers import Cluster, running
from tests.patience import until

OpenEtcd = Callable[[str], EtcdJournal[AnyRecord, State]]
pytestmark = pytest.mark.asyncio

PREFIX = "/tenure/"


async def add_user(etcd: Cluster, name: str, password: str) -> None:
    await etcd.call("/auth/user/add", {"name": name, "password": password})
    await etcd.call("/auth/role/add", {"name": name})
    await etcd.call("/auth/user/grant", {"user": name, "role": name})


async def ask_for_passwords(etcd: Cluster) -> None:
    """Do what docs/operating/etcd.md says."""
    await add_user(etcd, "root", "root's own")
    await add_user(etcd, "tenure", "open sesame")
    key, end = PREFIX.encode(), after_prefix(PREFIX.encode())
    permission = {
        "permType": "READWRITE",
        "key": b64encode(key).decode(),
        "range_end": b64encode(end).decode(),
    }
    await etcd.call("/auth/role/grant", {"name": "tenure", "perm": permission})
    await etcd.call("/auth/enable", {})


async def test_users_and_their_tokens(tmp_path: Path, open_etcd: OpenEtcd) -> None:
    password_file = tmp_path / "password"
    password_file.write_text("open sesame\n")
    async with running(tmp_path / "etcd") as etcd:
        user = {"user": "tenure", "password_file": password_file}
        known = open_etcd(etcd.journal_url(**user))
        leadership = await lead(known)  # etcd asks nobody yet, and a user is no harm
        await ask_for_passwords(etcd)
        assert await known.append(leadership, 0, numbered(0, 2)) == Committed(2)
        assert await known.compact(leadership, 1, A_STATE)
        assert await open_etcd(etcd.journal_url(**user)).load() == await known.load()

        with pytest.raises(ConfigurationError, match="it asks for a user"):
            await open_etcd(etcd.journal_url()).load()
        with pytest.raises(ConfigurationError, match="under the journal's prefix"):
            await open_etcd(etcd.journal_url(**user, prefix="/other/")).load()
        password_file.write_text("wrong")
        with pytest.raises(ConfigurationError, match="user and password are right"):
            await open_etcd(etcd.journal_url(**user)).load()

        # Tokens are gone with the process that gave them, which is as if they had expired.
        etcd.kill()
        etcd.members[0].start()

        async def refused() -> bool:
            try:
                await known.read_seat()
            except JournalUnwritable:
                return True  # with the wrong password; a manager that has worked tries again
            except JournalError:
                pass  # not back yet
            return False

        await until(refused, "etcd is back, and wants a password")
        password_file.write_text("open sesame\n")
        assert await known.append(leadership, 2, numbered(2, 1)) == Committed(3)


async def test_tls(tmp_path: Path, open_etcd: OpenEtcd) -> None:
    async with running(tmp_path / "a", options=["--auto-tls"]) as maker:
        found = next(maker.members[0].directory.rglob("fixtures/client/cert.pem"))
    async with running(tmp_path / "b", tls=found.parent) as etcd:
        await reads_and_writes(open_etcd(etcd.journal_url(ca=found)))
        with pytest.raises(JournalError, match=r"nothing was sent: .*certificate"):
            await open_etcd(etcd.journal_url()).load()
        plain = etcd.urls[0].replace("https:", "http:")
        with pytest.raises((JournalError, ConfigurationError), match=r"127\.0\.0\.1"):
            await open_etcd(f"etcd:{plain}").load()


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl makes the certificate")
async def test_tls_with_a_client_certificate(tmp_path: Path, open_etcd: OpenEtcd) -> None:
    cert, key = make_certificate(tmp_path)
    options = [f"--trusted-ca-file={cert}", "--client-cert-auth"]
    async with running(tmp_path / "etcd", options=options, tls=tmp_path) as etcd:
        await reads_and_writes(open_etcd(etcd.journal_url(ca=cert, cert=cert, key=key)))
        with pytest.raises(JournalError, match="no member of etcd answered"):
            await open_etcd(etcd.journal_url(ca=cert)).load()


async def reads_and_writes(journal: EtcdJournal[AnyRecord, State]) -> None:
    leadership = await lead(journal)
    assert await journal.append(leadership, 0, numbered(0, 2)) == Committed(2)
    assert (await journal.load()).records == numbered(0, 2)
    assert (await journal.health()).is_good


def make_certificate(directory: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1, for both sides, that vouches for itself; and its key."""
    cert, key = directory / "cert.pem", directory / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=etcd"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-addext", "extendedKeyUsage=serverAuth,clientAuth"),
            *("-out", str(cert), "-keyout", str(key)),
        ],
        check=True,
        capture_output=True,
    )
    return cert, key
