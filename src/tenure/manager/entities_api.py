"""The part of the JSON API that looks into entities: which keys there are, and what one has.

Owners answer, and the leader knows which. Where a store has the entities, any owner lists the keys
of the whole pool; otherwise each has its own, and the list goes through the ranges.

Keys are shown to whoever may read the pool. What the application keeps under them is shown to those
who may change anything, and to viewers where the manager was told so.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import msgspec
from aiohttp import web
from msgspec.structs import replace

from tenure.base.keys import Key
from tenure.errors import MALFORMED, RemoteProtocolError
from tenure.manager.access.roles import AccessRole, Permit
from tenure.manager.command_bodies import KEY_WAYS, user_key
from tenure.manager.entity_answers import KeysPage, named, shown_entity
from tenure.manager.http_errors import HttpRefusal, as_json, cut, whole_number
from tenure.manager.inspections import Inspections
from tenure.manager.steering_api import Asking, asked_key, with_any_name
from tenure.protocol.entity.inspection import (
    PAGE_ITEMS,
    PAGE_KEYS,
    FindKeys,
    FoundKeys,
    InspectionAnswer,
    InspectionQuestion,
    ListPlace,
    NotSeen,
    SeenEntity,
    ShowEntity,
)
from tenure.protocol.entity.key_line import NAME_CHARACTERS, EntityKey, Name
from tenure.protocol.lease.answers import Connection, Location, Owners, OwnerSummary
from tenure.protocol.lease.leader.events import ListOwners, Locate
from tenure.protocol.lease.limits import CLASS_LABEL

T = TypeVar("T", bound="KeysToken | ItemsToken")
ENTITIES_PATH, ENTITY_PATH = "/v1/pools/{pool}/entities", "/v1/pools/{pool}/entity"
FIRST_KEYS, FIRST_ITEMS = 100, 50
MOST_TOKEN = 8000
MOST_PARTS = 32
"""How many owners are asked for one page of keys: where few have any, pages are short."""
AGAIN = "ask again in a second or two"
FIRST_PAGE = "give as `after` the `next` of a page of this very list, or leave it out"


class KeysToken(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Where a list of keys goes on."""

    pool: Name
    of_pool: bool = False
    """Whether it goes through a store."""
    start: ListPlace = b""
    after: ListPlace = b""


class ItemsToken(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Where the items of a collection go on."""

    pool: Name
    key: EntityKey
    collection: Name
    after: ListPlace = b""


_token: msgspec.msgpack.Decoder[KeysToken | ItemsToken] = msgspec.msgpack.Decoder(
    KeysToken | ItemsToken
)


class WalkedPart(NamedTuple):
    """A part of a list of keys, of one owner or none."""

    keys: tuple[EntityKey, ...]
    rest: KeysToken | None
    is_unowned: bool = False


class EntitiesApi:
    """The handlers."""

    def __init__(
        self,
        asking: Asking,
        inspections: Inspections,
        permit_of: Callable[[web.Request], Permit],
        *,
        shows_viewers: bool,
    ) -> None:
        self._asking = asking
        self._inspections = inspections
        self._permit_of = permit_of
        self._shows_viewers = shows_viewers

    def add_routes(self, router: web.UrlDispatcher) -> list[str]:
        """Put the handlers under their paths, which are returned."""
        router.add_get(with_any_name(ENTITIES_PATH), self.keys)
        router.add_get(with_any_name(ENTITY_PATH), self.show)
        return [ENTITIES_PATH, ENTITY_PATH]

    # --- keys ---

    async def keys(self, request: web.Request) -> web.Response:
        """A page of keys."""
        pool, prefix = request.match_info["pool"], _text(request, "prefix")
        most = _count(request, FIRST_KEYS, PAGE_KEYS)
        rest: KeysToken | None = _opened(request, KeysToken(pool))
        owners = await self.owners(pool)
        found: list[EntityKey] = []
        unowned = 0
        for _ in range(MOST_PARTS):
            if rest is None or len(found) >= most:
                break
            part = await self.part(owners, rest, prefix, most - len(found))
            found += part.keys
            unowned += part.is_unowned
            rest = part.rest
        keys, after = tuple(map(named, found)), None if rest is None else _sealed(rest)
        return as_json(KeysPage(pool=pool, keys=keys, next=after, unowned=unowned))

    async def part(self, owners: Owners, at: KeysToken, prefix: str, most: int) -> WalkedPart:
        """The next keys of a list, of one owner at most. Raises HttpRefusal."""
        end = None
        if at.of_pool:
            connection = _any(owners)
        else:
            location = await self._asking.ask(Locate(at.pool, at.start), Location)
            end = None if location.end is None else bytes.fromhex(location.end.hex)
            owner = owner_in(owners, location)
            if owner is None:
                return WalkedPart((), _on(at, end), is_unowned=True)
            connection = owner[1]
        wanted = FindKeys(start=at.start, end=end, after=at.after, prefix=prefix, most=most)
        found = await self.ask(connection, at.pool, wanted)
        if not isinstance(found, FoundKeys) or (at.after and found.of_pool != at.of_pool):
            raise HttpRefusal(400, "this list has changed since, and cannot go on", FIRST_PAGE)
        if found.next is not None:
            rest = replace(at, of_pool=found.of_pool, start=found.start, after=found.next)
            return WalkedPart(found.keys, rest)
        return WalkedPart(found.keys, None if found.of_pool else _on(at, end))

    # --- one entity ---

    async def show(self, request: web.Request) -> web.Response:
        """One entity, or a page of a collection of it."""
        pool, collection = request.match_info["pool"], _text(request, "collection")
        place = asked_key(request, self._asking.pool_kind(pool))
        key = user_key(request.query)
        if isinstance(key, bytes):
            raise HttpRefusal(400, "the key of an entity is a text or a number", KEY_WAYS)
        at = _opened(request, ItemsToken(pool, key, collection))
        most = _count(request, FIRST_ITEMS, PAGE_ITEMS)
        contents = self.may_see_contents(request)
        if collection:
            self.check_sees_contents(request)
        found = await self.found_owner(await self.owners(pool), pool, place)
        if found is None:
            raise HttpRefusal(409, f"nobody owns the key {cut(str(key))!r} now", AGAIN)
        owner, connection = found
        asked = ShowEntity(
            key=key, contents=contents, collection=collection, after=at.after or None, most=most
        )
        seen = await self.ask(connection, pool, asked)
        if not isinstance(seen, SeenEntity):
            raise _odd(owner.name)
        try:
            shown = shown_entity(pool, key, owner, seen, contents=contents)
        except MALFORMED:
            raise _odd(owner.name) from None
        if seen.next is not None:
            shown = replace(shown, next=_sealed(replace(at, after=seen.next)))
        return as_json(shown)

    def may_see_contents(self, request: web.Request) -> bool:
        """Whether whoever asks may be shown what the application wrote."""
        permit = self._permit_of(request)
        is_shown_viewer = self._shows_viewers and permit.role is AccessRole.VIEWER
        return permit.may_change or is_shown_viewer

    def check_sees_contents(self, request: web.Request) -> None:
        """Raise HttpRefusal unless whoever asks may be shown what the application wrote."""
        if not self.may_see_contents(request):
            raise _not_for(self._permit_of(request))

    async def found_owner(
        self, owners: Owners, pool: str, place: Key
    ) -> tuple[OwnerSummary, Connection] | None:
        """The owner of a key, and how to ask it; None if nobody has it. Raises HttpRefusal."""
        return owner_in(owners, await self._asking.ask(Locate(pool, place), Location))

    async def owners(self, pool: str) -> Owners:
        """The owners of a pool. Raises HttpRefusal."""
        return await self._asking.ask(ListOwners(pool), Owners)

    # --- asking ---

    async def ask(
        self, connection: Connection, pool: str, question: InspectionQuestion
    ) -> InspectionAnswer:
        """The owner's answer. Raises HttpRefusal where it cannot answer."""
        try:
            answer = await self._inspections.ask(connection, pool, question)
        except TimeoutError:
            raise HttpRefusal(503, "the owner has not answered in time", AGAIN) from None
        except RemoteProtocolError as error:
            why, way_out = f"no owner can be asked that: {error}", "give a shorter key"
            raise HttpRefusal(400, cut(why), f"{way_out}, or begin with the first page") from None
        if isinstance(answer, NotSeen):
            raise HttpRefusal(503 if answer.may_repeat else 409, answer.why, answer.way_out)
        return answer


def _on(at: KeysToken, end: bytes | None) -> KeysToken | None:
    """The list behind a range of which everything is told."""
    return None if end is None else KeysToken(at.pool, start=end)


def owner_in(owners: Owners, location: Location) -> tuple[OwnerSummary, Connection] | None:
    """The owner there; None where nobody is. Raises HttpRefusal if it cannot be asked."""
    if location.owner is None:
        return None
    for owner, connection in zip(owners.owners, owners.connections, strict=True):
        if owner.incarnation == location.owner.incarnation:
            check_has_told(owner)
            if owner.entities is None or not owner.entities.inspects:
                raise HttpRefusal(
                    409,
                    f"the owner {cut(owner.name)} runs no entities, or a version of tenure whose "
                    "entities cannot be looked into",
                    "name a pool of entities whose processes run this version",
                )
            if connection is None:
                raise HttpRefusal(503, f"the owner {cut(owner.name)} is not connected", AGAIN)
            return owner, connection
    return None


def check_has_told(owner: OwnerSummary) -> None:
    """Raise HttpRefusal if an owner has just joined, and not told of its entities yet."""
    if owner.entities is None and CLASS_LABEL in owner.labels:
        why = f"the owner {cut(owner.name)} has not said yet which entities it runs"
        raise HttpRefusal(503, why, AGAIN)


def _any(owners: Owners) -> Connection:
    """An owner that has the store. Raises HttpRefusal if there is none."""
    for owner, connection in zip(owners.owners, owners.connections, strict=True):
        if connection is not None and owner.entities is not None and owner.entities.inspects:
            return connection
    raise HttpRefusal(503, f"no owner of {cut(owners.pool)} is connected", AGAIN)


def _odd(owner: str) -> HttpRefusal:
    return HttpRefusal(409, f"the owner {cut(owner)} has answered something else", "look at it")


def _not_for(permit: Permit) -> HttpRefusal:
    return HttpRefusal(
        403,
        f"the {permit} shows keys of entities, and not what is kept under them",
        "use a token of the role admin, or start managers with --viewers-see-contents",
    )


def _text(request: web.Request, name: str) -> str:
    written = request.query.get(name, "")
    if len(written) > NAME_CHARACTERS:
        raise HttpRefusal(400, f"{name} has {len(written)} characters", "give a shorter one")
    return written


def _count(request: web.Request, usual: int, most: int) -> int:
    way_out = f"give a number from 1 to {most}, or leave it out"
    count = whole_number(request, "most", "a number", way_out)
    if count is None:
        return usual
    if not 1 <= count <= most:
        raise HttpRefusal(400, f"most={count} is not from 1 to {most}", way_out)
    return count


def _sealed(at: KeysToken | ItemsToken) -> str:
    return urlsafe_b64encode(msgspec.msgpack.encode(at)).decode().rstrip("=")


def read_place(written: str) -> KeysToken | ItemsToken:
    """The place that a token tells. Raises HttpRefusal for what is none."""
    try:
        if not written.isascii() or len(written) > MOST_TOKEN:
            raise ValueError(written)
        return _token.decode(urlsafe_b64decode(written + "=" * (-len(written) % 4)))
    except MALFORMED:
        raise HttpRefusal(400, f"after={cut(written)} is no place in a list", FIRST_PAGE) from None


def _opened(request: web.Request, first: T) -> T:
    """The place that `after` says, of the list that begins with `first`. Raises HttpRefusal for one
    of another list.
    """
    written = request.query.get("after")
    if written is None:
        return first
    found = read_place(written)
    if type(found) is not type(first) or _list_of(found) != _list_of(first):
        raise HttpRefusal(400, "`after` is of the list of another pool or key", FIRST_PAGE)
    return found


def _list_of(at: KeysToken | ItemsToken) -> tuple[object, ...]:
    return (at.pool,) if isinstance(at, KeysToken) else (at.pool, at.key, at.collection)
