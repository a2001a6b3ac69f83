"""Three managers and five members of etcd, as docs/operating/several-managers.md has them."""

from pathlib import Path

import pytest

from tenure.runtime.clock import boot_clock
from tests.integration.failover.stage import TERMINATE, on_etcd
from tests.integration.failover.traffic import traffic

pytestmark = pytest.mark.asyncio


async def test_every_manager_is_replaced_and_nobody_notices(tmp_path: Path) -> None:
    """One after the other, and the file first; two members of etcd are lost beside it."""
    file, urls = tmp_path / "managers", list[str]()

    def write() -> None:
        file.write_text("\n".join(urls))

    async with on_etcd(tmp_path, managers=3, size=5) as stage:
        assert stage.etcd
        urls += stage.urls
        write()
        async with traffic(f"@{file}", stage.timing) as clients:
            for member in stage.etcd.members[:2]:
                member.kill()
            for old in list(stage.managers):
                new = stage.start(old.journal)
                await stage.listening()
                urls.append(new.url)
                write()
                ending = boot_clock()
                old.send(TERMINATE)
                assert await old.ended() == 0, old.log
                urls.remove(old.url)
                write()
                await clients.renewed(ending)
            await clients.have_served()
            clients.check_unharmed()
            assert urls == [each.url for each in stage.managers[3:]]
            await clients.newcomer()
