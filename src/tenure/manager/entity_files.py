"""Entity files: the part of the JSON API that exports the entities of a pool, and imports them.

An export is one answer of any length, written as owners tell their entities, and read by whoever
asked at their own pace. An import comes in requests of some entities each, of which every one has
an outcome of its own: owners take them one by one.
"""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Annotated, Literal, NamedTuple, TypeAlias

import msgspec
from aiohttp import web

from tenure.base.keys import Key
from tenure.manager.command_bodies import key_in
from tenure.manager.entities_api import AGAIN, EntitiesApi, KeysToken, WalkedPart, check_has_told
from tenure.manager.http_errors import HttpRefusal, as_json, check_is_json, cut, decoded_body
from tenure.manager.steering_api import Asking, with_any_name
from tenure.protocol.entity.copying import PART_BYTES, CopiedLines, CopyEntity, PutDone, PutEntity
from tenure.protocol.entity.export_lines import (
    DIGEST_BYTES,
    LAYOUT,
    AgainLine,
    CutLine,
    EndLine,
    ExportLine,
    written,
)
from tenure.protocol.entity.key_line import EntityKey, Name
from tenure.protocol.lease.answers import Connection, Owners
from tenure.protocol.lease.limits import CLASS_VERSION_LABEL

EXPORT_PATH, IMPORT_PATH = "/v1/pools/{pool}/entities/export", "/v1/pools/{pool}/entities/import"
EXPORT_TYPE = "application/x-ndjson"
EXPORTS_AT_ONCE = 2
PATIENCE_SECONDS = 30.0
"""How long an export waits for an owner of a key: longer than a takeover, or a hand-off, takes."""
PAUSE_SECONDS = 0.5
KEYS_AT_ONCE = 100
MOST_TRIES = 5
"""How often an entity is begun again that does not fit into one message."""
MOST_PUTS = 200
PUTS_AT_ONCE = 3
"""How many of one request are put in at once: fewer than a pool may be asked, so that there is room
for whoever looks at one.
"""
MOST_PERMITS = 1000
IMPORT_BYTES = 4 << 20
"""The most bytes of a body: the lines of an owner's message, whose quotes are written in two."""
IMPORT_SECONDS = 15.0
"""After so long nothing more of a request is begun: whoever asked may have given up."""
Hex: TypeAlias = Annotated[
    str, msgspec.Meta(max_length=2 * DIGEST_BYTES, pattern=r"^([0-9a-f]{64})?\Z")
]


class GivenEntity(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Lines to import, all of one entity."""

    key: EntityKey
    digest: Hex
    """The SHA-256 of all lines of the entity but for its answers, as an export writes them."""
    lines: Annotated[str, msgspec.Meta(max_length=PART_BYTES)]
    part: Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)] = 0
    """How many parts came before."""
    is_last: bool = True
    replaces: Hex = ""
    """The digest of what they may take the place of."""


class ImportBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Entities to import, all of one class."""

    kind: Name
    """The name of the class."""
    entities: Annotated[list[GivenEntity], msgspec.Meta(max_length=MOST_PUTS)]


class ImportOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What has become of one entity: as in `PutDone`; or it was `refused`; or nothing of it was
    begun, or nobody knows, and it may be given again `later`.
    """

    key: EntityKey
    outcome: Literal["put", "same", "differs", "part", "refused", "later"]
    there: str = ""
    parts: int = 0
    why: str = ""
    way_out: str = ""


class ImportAnswer(msgspec.Struct, frozen=True):
    """The outcomes, in the order of the request."""

    outcomes: list[ImportOutcome]


class ExportedPart(NamedTuple):
    """Some lines of an export, and how many entities begin there."""

    data: bytes
    entities: int = 0


class EntityFiles:
    """The handlers."""

    def __init__(self, asking: Asking, entities: EntitiesApi) -> None:
        self._asking = asking
        self._entities = entities
        self._exports = 0
        self._permits: dict[Connection, bytes] = {}
        """The last that each owner has given."""

    def add_routes(self, router: web.UrlDispatcher) -> list[str]:
        """Put the handlers under their paths, which are returned."""
        router.add_get(with_any_name(EXPORT_PATH), self.export, allow_head=False)
        router.add_post(with_any_name(IMPORT_PATH), self.import_)
        return [EXPORT_PATH, IMPORT_PATH]

    # --- export ---

    async def export(self, request: web.Request) -> web.StreamResponse:
        """All entities of a pool."""
        pool = request.match_info["pool"]
        self._entities.check_sees_contents(request)
        if self._exports >= EXPORTS_AT_ONCE:
            why = f"{EXPORTS_AT_ONCE} exports are under way at this manager"
            raise HttpRefusal(503, why, "wait until one has ended")
        self._exports += 1
        try:
            head = written(await self._head(pool))
            response = web.StreamResponse(headers=_headers(pool))
            response.content_type = EXPORT_TYPE
            await response.prepare(request)
            await self._write(response, head, pool)
            await response.write_eof()
            return response
        finally:
            self._exports -= 1

    async def _head(self, pool: str) -> ExportLine:
        gives_up = time.monotonic() + PATIENCE_SECONDS
        while True:
            owners = await self._entities.owners(pool)
            try:
                return _head(owners)
            except HttpRefusal as refused:
                await _pause(refused, gives_up)

    async def _write(self, response: web.StreamResponse, head: bytes, pool: str) -> None:
        digest, lines, entities = hashlib.sha256(), 0, 0

        async def say(data: bytes) -> None:
            nonlocal lines
            digest.update(data)
            lines += data.count(b"\n")
            await response.write(data)

        await say(head)
        try:
            async for part in self._exported(pool):
                entities += part.entities
                if part.data:
                    await say(part.data)
        except HttpRefusal as refused:
            problem = refused.problem
            await response.write(written(CutLine(why=problem.error, way_out=problem.way_out)))
            return
        end = EndLine(entities=entities, lines=lines, sha256=digest.hexdigest())
        await response.write(written(end))

    async def _exported(self, pool: str) -> AsyncIterator[ExportedPart]:
        rest: KeysToken | None = KeysToken(pool)
        gives_up = time.monotonic() + PATIENCE_SECONDS
        while rest is not None:
            try:
                owners = await self._entities.owners(pool)
                part = await self._entities.part(owners, rest, "", KEYS_AT_ONCE)
                _check_is_owned(part, pool)
            except HttpRefusal as refused:
                await _pause(refused, gives_up)
                continue
            for key in part.keys:
                async for lines in self._entity(owners, pool, key):
                    yield lines
            rest, gives_up = part.rest, time.monotonic() + PATIENCE_SECONDS

    async def _entity(
        self, owners: Owners, pool: str, key: EntityKey
    ) -> AsyncIterator[ExportedPart]:
        """All lines of an entity, and of those that do not count because it had to begin again."""
        gives_up, tries = time.monotonic() + PATIENCE_SECONDS, 0
        while True:
            begun = False
            try:
                async for found in self._copied(owners, pool, key):
                    if found.lines:
                        begun = True
                        yield ExportedPart(found.lines)
                yield ExportedPart(b"", entities=int(begun))
                return
            except HttpRefusal as refused:
                tries += begun
                if tries >= MOST_TRIES:
                    raise
                await _pause(refused, gives_up)
            if begun:
                yield ExportedPart(written(AgainLine(key=key)))
            owners = await self._entities.owners(pool)

    async def _copied(
        self, owners: Owners, pool: str, key: EntityKey
    ) -> AsyncIterator[CopiedLines]:
        connection = await self._connection(owners, pool, key)
        copy = 0
        while True:
            question = CopyEntity(key=key, copy=copy)
            found = await self._entities.ask(connection, pool, question)
            if not isinstance(found, CopiedLines):
                raise HttpRefusal(409, "an owner has answered something else", "look at it")
            yield found
            copy = found.copy
            if not copy:
                return

    async def _connection(self, owners: Owners, pool: str, key: EntityKey) -> Connection:
        found = await self._entities.found_owner(owners, pool, self._place(pool, key))
        if found is None:
            raise HttpRefusal(503, f"nobody owns the key {cut(str(key))!r} now", AGAIN)
        return found[1]

    def _place(self, pool: str, key: EntityKey) -> Key:
        form = "int" if isinstance(key, int) else "key"
        return key_in({form: str(key)}, self._asking.pool_kind(pool))

    # --- import ---

    async def import_(self, request: web.Request) -> web.Response:
        """Put some entities in."""
        check_is_json(request)
        way_out = 'the body is {"kind": CLASS, "entities": [{"key": ..., "digest": ..., "lines"}]}'
        body = decoded_body(await request.read(), ImportBody, way_out)
        pool, ends_at = request.match_info["pool"], time.monotonic() + IMPORT_SECONDS
        owners = await self._entities.owners(pool)
        slots = asyncio.Semaphore(PUTS_AT_ONCE)

        async def outcome(given: GivenEntity) -> ImportOutcome:
            async with slots:
                return await self._outcome(owners, pool, body.kind, given, ends_at)

        return as_json(ImportAnswer(await asyncio.gather(*map(outcome, body.entities))))

    async def _outcome(
        self, owners: Owners, pool: str, kind: str, given: GivenEntity, ends_at: float
    ) -> ImportOutcome:
        try:
            connection = await self._connection(owners, pool, given.key)
            done = await self._put(connection, pool, kind, given, ends_at)
        except HttpRefusal as refused:
            is_soon = refused.status == web.HTTPServiceUnavailable.status_code
            return ImportOutcome(
                key=given.key,
                outcome="later" if is_soon else "refused",
                why=refused.problem.error,
                way_out=refused.problem.way_out,
            )
        assert done.outcome != "stale"
        return ImportOutcome(
            key=given.key, outcome=done.outcome, there=done.there.hex(), parts=done.parts
        )

    async def _put(
        self, connection: Connection, pool: str, kind: str, given: GivenEntity, ends_at: float
    ) -> PutDone:
        lines = given.lines.encode()
        if len(lines) > PART_BYTES:
            why = f"the lines of {cut(str(given.key))!r} have {len(lines):,} bytes"
            raise HttpRefusal(400, why, f"give {PART_BYTES:,} at most, in several parts")
        while time.monotonic() < ends_at:
            question = PutEntity(
                key=given.key,
                kind=kind,
                digest=bytes.fromhex(given.digest),
                lines=lines,
                part=given.part,
                is_last=given.is_last,
                permit=self._permits.get(connection, b""),
                replaces=bytes.fromhex(given.replaces),
            )
            done = await self._entities.ask(connection, pool, question)
            if not isinstance(done, PutDone):
                raise HttpRefusal(409, "an owner has answered something else", "look at it")
            self._permits.pop(connection, None)
            self._permits[connection] = done.permit
            if len(self._permits) > MOST_PERMITS:
                del self._permits[next(iter(self._permits))]
            if done.outcome != "stale":
                return done
        raise HttpRefusal(503, "this takes too long in one request", "give fewer entities at once")


def _head(owners: Owners) -> ExportLine:
    """The first line. Raises HttpRefusal where there are no entities."""
    for each in owners.owners:
        if each.entities is not None and each.entities.inspects:
            version = each.labels.get(CLASS_VERSION_LABEL, "")
            return ExportLine(
                layout=LAYOUT,
                pool=owners.pool,
                kind=each.entities.kind,
                version=int(version) if version.isdecimal() else 1,
                at=datetime.now(UTC).isoformat(timespec="seconds"),
            )
    for each in owners.owners:
        check_has_told(each)
    raise HttpRefusal(
        409,
        f"no process of the pool {cut(owners.pool)} runs entities that can be looked into",
        "name a pool of entities whose processes run this version",
    )


def _check_is_owned(part: WalkedPart, pool: str) -> None:
    if part.is_unowned:  # what is there is on its way to somebody
        raise HttpRefusal(503, f"nobody owns a range of {cut(pool)}", AGAIN)


def _headers(pool: str) -> dict[str, str]:
    plain = "".join(each if each.isascii() and each.isalnum() else "-" for each in pool)
    return {"Content-Disposition": f'attachment; filename="{plain[:100]}.jsonl"'}


async def _pause(refused: HttpRefusal, gives_up: float) -> None:
    """Wait a moment, where that may help. Raises what was refused where it does not."""
    if refused.status != web.HTTPServiceUnavailable.status_code or time.monotonic() > gives_up:
        raise refused
    await asyncio.sleep(PAUSE_SECONDS)
