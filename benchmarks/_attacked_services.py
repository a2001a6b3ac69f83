"""More that is attacked: a service of feeds, a web service, a cache server, and a manager that lets
in only who shows a certificate. What uses them goes on beside, and counts what fails.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import aiohttp
import msgspec

from benchmarks._attacks import shops
from benchmarks._process import Process
from lab.demo.mesh.service_processes import ServiceProcess
from tenure import Cache
from tenure.errors import TenureError
from tests.certificates import Authority
from tests.unit.services.test_feed_items import RSS

FEEDS = "feeds"
POOLS = (FEEDS, shops.POOL)
"""The pools of these services, whose processes may not expire."""
AGAIN_SECONDS = 0.2
ANSWER_SECONDS = 10.0
"""Within this long everything is answered: a third of it is a term."""
WITHDRAWN_SECONDS = 2.0
"""How long those are let in whose authority is then withdrawn."""
OK = 200


class Withdrawal:
    """An authority of which clients have certificates, and which is withdrawn after a while."""

    def __init__(self, directory: Path) -> None:
        self._kept, self._gone = Authority(directory), Authority(directory, "gone")
        self.server = self._kept.sign("server")
        self.taken = directory / "taken.pem"
        self.let_in()
        shown = self._gone.sign("withdrawn")
        self.identity = directory / "identity.pem"
        self.identity.write_bytes(shown.key.read_bytes() + shown.cert.read_bytes())
        directory.chmod(0o755)  # for the attackers, who are another user
        self.identity.chmod(0o644)

    def let_in(self) -> None:
        """Take certificates of both."""
        self._take(self._kept.file.read_bytes() + self._gone.file.read_bytes())

    def withdraw(self) -> None:
        """Take certificates of one from now on."""
        self._take(self._kept.file.read_bytes())

    def _take(self, authorities: bytes) -> None:
        new = self.taken.with_suffix(".new")
        new.write_bytes(authorities)
        new.rename(self.taken)


class AttackedServices:
    def __init__(self, directory: Path, manager: str, tokens: Mapping[str, str]) -> None:
        self._manager = manager
        self._tokens = tokens
        shown = {"TENURE_TOKEN": tokens[f"owner {FEEDS}"]}
        serve = ("serve", FEEDS, "--manager", manager, "--listen", "127.0.0.1:0")
        guarded = ("--tokens", str(directory / "tokens"))
        self._feeds = ServiceProcess(FEEDS, (*serve, *guarded), shown)
        self._shops = Process("benchmarks._attacks.shops")
        self._guarded: ServiceProcess
        self._listens: shops.Listens
        self.withdrawal: Withdrawal
        self.failed: Counter[str] = Counter()
        """Requests that failed, or were answered too late."""

    async def start(self, stack: AsyncExitStack) -> None:
        """Start all of it."""
        stack.push_async_callback(self._feeds.end)
        await self._feeds.start()
        stack.push_async_callback(self._shops.kill)
        told = shops.Told(self._manager, self._tokens[f"owner {shops.POOL}"])
        said = await self._shops.begin(msgspec.json.encode(told))
        self._listens = msgspec.json.decode(said, type=shops.Listens)
        self.withdrawal = Withdrawal(Path(stack.enter_context(TemporaryDirectory())))
        self._guarded = self._manager_with_tls()
        stack.push_async_callback(self._guarded.end)
        await self._guarded.start()
        await self._use(stack)

    def _manager_with_tls(self) -> ServiceProcess:
        cert, key = map(str, self.withdrawal.server)
        tls = ("--tls-cert", cert, "--tls-key", key, "--tls-client-ca", str(self.withdrawal.taken))
        said = ("manager", "--port", "0", "--journal", "memory", "--log-level", "error")
        return ServiceProcess("guarded manager", (*said, "--first-start", *tls))

    async def _use(self, stack: AsyncExitStack) -> None:
        """Go on using it until the stack ends."""
        shown = {"Authorization": f"Bearer {self._tokens[f'owner {FEEDS}']}"}
        session = await stack.enter_async_context(aiohttp.ClientSession())
        cache: Cache[str] = Cache(self._listens.cache, value_type=str)
        await stack.enter_async_context(cache)

        feed = f"{self._feeds.url}/feeds/read"
        async with session.post(f"{feed}/bodies", data=RSS, headers=shown) as pushed:
            assert pushed.status == OK

        async def read(_: int) -> bool:
            """Bodies may have to wait for an attacker's, as SECURITY.md says; readers not."""
            async with session.get(feed, headers=shown) as answer:
                return answer.status == OK

        async def visited(number: int) -> bool:
            async with session.get(f"{self._listens.shops[0]}/carts/{number}") as answer:
                return answer.status == OK

        async def cached(number: int) -> bool:
            return await cache.get(f"new-{number}") == f"new-{number}"

        uses = {"feeds": read, "a web service": visited, "a cache server": cached}
        for name, use in uses.items():
            stack.callback(asyncio.ensure_future(self._go_on(name, use)).cancel)

    async def _go_on(self, name: str, use: Callable[[int], Awaitable[bool]]) -> None:
        """Use it again and again."""
        for number in count():
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    self.failed[name] += not await use(number)
            except (TenureError, TimeoutError, aiohttp.ClientError):
                self.failed[name] += 1
            await asyncio.sleep(AGAIN_SECONDS)

    def targets(self) -> dict[str, Sequence[str]]:
        """What attackers are told."""
        return {
            "feeds": [self._feeds.url],
            "shop": self._listens.shops,
            "member": self._listens.members,
            "cache": [self._listens.cache],
            "guarded": [self._guarded.url],
        }

    def shown(self) -> dict[str, str]:
        """What attackers show beside tokens."""
        return {"certificate": str(self.withdrawal.identity)}

    def pids(self) -> dict[str, int]:
        """The processes."""
        return {
            "feeds": self._feeds.process.pid,
            "web service": self._shops.inner.pid,
            "guarded manager": self._guarded.process.pid,
        }
