"""Asks the owner of a feed, if it is known and answers (PRS 3.1, 3.3).

Nobody checks who owns a feed: if its owner does not answer for a while, this process carries the
request out. The number of requests under way to one owner is capped. A request beyond that is
refused at once, so a slow owner does not take the connections of healthy ones.
"""

import asyncio
import logging
from collections.abc import Mapping

import aiohttp
from yarl import URL

from tenure import Credentials, Lookup, Owner
from tenure.errors import ServiceRefusal
from tenure.services.address_slots import AddressSlots
from tenure.services.limits import OVERLOADED, ServiceLimit
from tenure.services.operations import ServiceAnswer, ServiceRequest

HOP = "Tenure-Hop"
"""The header of a request that another process of the service has passed on: this process must
carry it out.
"""
OUTSTANDING = ServiceLimit(
    "outstanding", 100, OVERLOADED, "requests to one owner, which must not take those to others"
)
MOST_ANSWER_BYTES = 64 << 20
"""An owner that answers more is broken, or means harm: this process carries the request out."""
ANSWER_SECONDS = 10.0
"""How long the owner has to answer."""
AGAIN_SECONDS = 1.0
"""How long to look for an owner that answers; after that this process carries the request out."""
MOVED = 421
logger = logging.getLogger("tenure.services")


class FeedOwners:
    """The owners of feeds, as one process knows them; it is one of them itself."""

    def __init__(
        self,
        owner: Owner,
        lookup: Lookup,
        session: aiohttp.ClientSession,
        credentials: Credentials,
    ) -> None:
        self.owner = owner
        self.lookup = lookup
        self.is_leaving = False
        self.outstanding = AddressSlots(OUTSTANDING.most)
        self.processed_elsewhere = 0
        """Requests that this process carried out, although another process owns their feeds."""
        self._session = session
        self._credentials = credentials

    async def answer(self, asked: ServiceRequest) -> ServiceAnswer | None:
        """The owner's answer; None if this process must carry the request out."""
        if HOP in asked.headers:
            if self.is_leaving and self.owner.check(asked.key) is None:
                raise ServiceRefusal(MOVED, "moved", "the feed has been handed over")
            return None  # its lookup has ended already if this process leaves
        until = asyncio.get_running_loop().time() + AGAIN_SECONDS
        while True:
            address = self.lookup.find(asked.key)
            if address is None or address == self.owner.address:
                return None
            answer = await self._asked_of(address, asked)
            if answer is not None:
                return answer
            if asyncio.get_running_loop().time() > until:
                self.processed_elsewhere += 1
                return None
            await asyncio.sleep(AGAIN_SECONDS / 10)  # if it leaves, another has the feed soon

    async def _asked_of(self, address: str, asked: ServiceRequest) -> ServiceAnswer | None:
        """The answer of an owner; None if it does not answer, or no longer has the feed."""
        if self.outstanding.is_full(address):
            raise OUTSTANDING.exceeded(OUTSTANDING.most + 1)
        passed_on = ("Content-Type", "If-None-Match")
        try:
            async with (
                self.outstanding.slot(address),
                self._session.request(
                    asked.request.method,
                    _at(address, asked.request.rel_url),
                    data=await asked.request.read(),
                    headers={HOP: "1", **_of_these(asked.headers, passed_on)},
                    timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS),
                    ssl=self._credentials.to(address) or True,
                    allow_redirects=False,
                ) as response,
            ):
                if response.status == MOVED:
                    return None
                kept = _of_these(response.headers, ("Content-Type", "ETag", "Retry-After"))
                body = await read_answer(response)
                return ServiceAnswer(response.status, body or None, kept)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            logger.info("%s does not answer for %.100r: %s", address, asked.key, error)
            return None


async def read_answer(response: aiohttp.ClientResponse) -> bytes:
    """The body of an owner's answer. Raises ClientPayloadError if it is longer than any of ours."""
    body = bytearray()
    async for chunk in response.content.iter_chunked(1 << 16):
        body += chunk
        if len(body) > MOST_ANSWER_BYTES:
            raise aiohttp.ClientPayloadError(f"it answers more than {MOST_ANSWER_BYTES} bytes")
    return bytes(body)


def _at(address: str, target: URL) -> URL:
    """The URL of a request at another owner, put together from its parts: it leads to that owner,
    however its path is spelled.
    """
    origin = URL(address)
    return URL.build(
        scheme=origin.scheme,
        authority=origin.authority,
        path=target.raw_path,
        query_string=target.raw_query_string,
        encoded=True,
    )


def _of_these(headers: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    return {name: headers[name] for name in names if name in headers}
