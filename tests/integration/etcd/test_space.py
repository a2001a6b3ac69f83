"""Etcd out of space: the error names the way out, and everything goes on after that."""

import asyncio
import json
import subprocess
from base64 import b64encode
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tenure.errors import JournalUnwritable
from tenure.journals.etcd.journal import EtcdJournal
from tenure.protocol.lease.records import AnyRecord, State
from tenure.protocol.log.journal import Committed, Unknown
from tenure.testing.contracts.journal import lead
from tenure.testing.contracts.records import A_STATE, numbered
from tests.integration.etcd.servers import Cluster, EtcdSays, etcdctl_binary, running
from tests.patience import DEADLINE_SECONDS, until
from tests.repo.reading import ROOT

QUOTA = 4 << 20
GUIDE = ROOT / "docs" / "operating" / "etcd.md"


async def fill(etcd: Cluster) -> None:
    """Put one key over and over, until etcd raises its alarm."""
    value = b64encode(bytes(1 << 19)).decode()
    key = b64encode(b"/somebody/else").decode()

    async def is_full() -> bool:
        try:
            await etcd.call("/kv/put", {"key": key, "value": value})
        except EtcdSays as error:
            return "space exceeded" in str(error)
        return False

    await until(is_full, "etcd is full")


async def free(etcd: Cluster) -> None:
    """Do what the error says."""
    await etcd.compact()
    await etcd.call("/maintenance/defragment", {})
    for alarm in (await etcd.call("/maintenance/alarm", {"action": "GET"})).get("alarms", []):
        await etcd.call("/maintenance/alarm", {"action": "DEACTIVATE", **alarm})


async def free_as_the_guide_says(etcd: Cluster) -> None:
    """The commands of docs/operating/etcd.md, in their order."""
    section = GUIDE.read_text("utf-8").split("\n### Out of space\n")[1].split("\n## ")[0]
    commands = [line.split("#")[0].split() for line in section.splitlines() if line[:4].isspace()]
    revision = ""
    for command in commands:
        words = [revision if word == "REVISION" else word for word in command[1:]]
        done = await asyncio.to_thread(
            subprocess.run,
            [str(etcdctl_binary()), *words],
            check=True,
            capture_output=True,
            env={"ETCDCTL_API": "3", "ETCDCTL_ENDPOINTS": ",".join(etcd.urls)},
        )
        if "status" in words:
            revision = str(json.loads(done.stdout)[0]["Status"]["header"]["revision"])
    assert len(commands) == 4


NEEDS_ETCDCTL = pytest.mark.skipif(
    not etcdctl_binary().exists(), reason="there is no etcdctl beside etcd"
)


@pytest.mark.asyncio
@pytest.mark.parametrize("free", [free, pytest.param(free_as_the_guide_says, marks=NEEDS_ETCDCTL)])
async def test_etcd_out_of_space(
    tmp_path: Path,
    open_etcd: Callable[[str], EtcdJournal[AnyRecord, State]],
    free: Callable[[Cluster], Awaitable[None]],
) -> None:
    async with running(tmp_path, options=[f"--quota-backend-bytes={QUOTA}"]) as etcd:
        journal = open_etcd(etcd.journal_url())
        leadership = await lead(journal)
        assert await journal.append(leadership, 0, numbered(0, 2)) == Committed(2)
        await fill(etcd)

        result = await journal.append(leadership, 2, numbered(2, 1))
        assert isinstance(result, Unknown)
        assert "etcdctl alarm disarm" in result.why
        for call in (journal.beat(leadership, 1), journal.compact(leadership, 2, A_STATE)):
            with pytest.raises(JournalUnwritable, match="out of space"):
                await call
        assert (await open_etcd(etcd.journal_url()).load()).lsn == 2  # reading goes on
        assert (await journal.health()).alarms == ("NOSPACE",)

        await free(etcd)
        assert (await journal.health()).is_good
        assert await journal.append(leadership, 2, numbered(2, 1)) == Committed(3)
        assert await journal.compact(leadership, 2, A_STATE)
        found = await asyncio.wait_for(journal.load(), DEADLINE_SECONDS)
        assert (found.state, found.records) == (A_STATE, numbered(2, 1))
