"""The publisher of changes of documents: what was committed and not yet told goes to pubsub.

What is untold is part of the document, in the same commit as the change. So a process that is
killed right after its answer leaves it to the next owner, if a store keeps documents: an alarm,
which is in that commit, too, makes it publish. A change is published at least once. Changes that
wait together are one message, which shows the document as it is by then.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextvars import Context
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from tenure import Credentials, Entities, TenureError
from tenure.errors import ServiceRefusal
from tenure.services.documents.document import Document, UntoldChange
from tenure.services.pubsub.client import PubSubClient

MOST_UNDER_WAY = 1000
"""How many documents are published at a time. An alarm brings the others again."""
AT_ONCE = 32
"""How many of them ask pubsub at once."""
ASK_SECONDS = 10.0
BAD_REQUEST, SERVER_ERROR = 400, 500
logger = logging.getLogger("tenure.services")


class ChangeTopics(Protocol):
    """Where changes are published: a `PubSubClient`."""

    async def publish(self, topic: str, data: object, *, id: str) -> object:  # noqa: A002
        """Publish once for each id. Raises TenureError."""
        ...


class ChangePublisher:
    """The publisher of one process."""

    documents: Entities[Document]
    topics: ChangeTopics

    def __init__(self) -> None:
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        """Documents that have changed while they were published."""
        self._slots = asyncio.Semaphore(AT_ONCE)

    def kick(self, key: str) -> "asyncio.Task[None] | None":
        """Publish what is untold of a document, whoever owns it; None if too much is under way."""
        task = self._under_way.get(key)
        if task is not None:
            self._again.add(key)
        elif len(self._under_way) < MOST_UNDER_WAY:
            # Whatever kicks it, it does not run on behalf of a turn.
            task = asyncio.get_running_loop().create_task(self._publish(key), context=Context())
            self._under_way[key] = task
        return task

    async def settle(self, key: str, seconds: float) -> None:
        """Publish, and wait until that is done or `seconds` are over."""
        task = self.kick(key)
        if task is not None:
            await asyncio.wait({task}, timeout=seconds)

    async def _publish(self, key: str) -> None:
        try:
            async with self._slots:
                is_over = False
                while not is_over:
                    self._again.discard(key)
                    change = await self.documents[key].untold()
                    if change is not None:
                        await self._tell(key, change)
                    is_over = change is None and key not in self._again
        except TenureError as error:
            logger.info("changes of %.100r are published later: %s", key, error)
        except Exception:
            logger.exception("changes of %.100r are published later", key)
        finally:
            self._again.discard(key)
            del self._under_way[key]

    async def _tell(self, key: str, change: UntoldChange) -> None:
        try:
            await self.topics.publish(key, change.event, id=change.id)
        except ServiceRefusal as refused:
            if not BAD_REQUEST <= refused.status < SERVER_ERROR or "values" not in change.event:
                raise
            # A value may be nested so deep that no message holds it.
            named = {name: it for name, it in change.event.items() if name != "values"}
            await self.topics.publish(key, named, id=f"{change.id} names")
        await self.documents[key].was_told(change.number)

    async def close(self) -> None:
        """Publish no more; what is untold stays with the documents."""
        tasks = [*self._under_way.values()]
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def change_topics(urls: Sequence[str], token: Path | None) -> PubSubClient:
    """The pubsub at these URLs, shown the token in that file, or this process's own."""
    shown = None
    if token is not None:
        shown = replace(Credentials.from_environment(), token=None, token_file=token)
    return PubSubClient(urls, deadline=ASK_SECONDS, credentials=shown)
