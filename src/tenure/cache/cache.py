"""`Cache`: the library in a frontend that reads what owners, or one server, serve."""

from collections.abc import Awaitable
from concurrent.futures import Future
from typing import Any, Self, TypedDict, TypeVar, Unpack, overload

from msgspec.structs import astuple

from tenure.base.instants import seconds
from tenure.base.keys import UserKey
from tenure.base.names import shown
from tenure.cache.board import WHAT, CacheBoard, HitSampler
from tenure.cache.cache_engine import CacheEngine
from tenure.cache.hit import MISSING, Hits
from tenure.cache.object_keys import ObjectKeys
from tenure.client.arguments import checked_count, checked_seconds, checked_share
from tenure.client.entering import Enterable
from tenure.client.environment import Environment, environment_here
from tenure.client.hand_off.likeness import ValueCodec
from tenure.client.lookup import Lookup
from tenure.client.manager_url import checked, useless
from tenure.client.options import check_known
from tenure.errors import ConfigurationError
from tenure.protocol.volume.client.events import CacheConfig
from tenure.protocol.volume.messages import AsOf
from tenure.runtime.loops import wait_for
from tenure.transport.credentials import Credentials

V = TypeVar("V")

LIMIT = 100_000
"""The default limit of entries."""
LIMIT_BYTES = 256 << 20
PATIENCE_SECONDS = 5.0
WRITE_PATIENCE_SECONDS = 30.0
ENTER_SECONDS = 15.0
OF, EXAMPLE = "a CacheServer", "http://127.0.0.1:7500"


class CacheOptions(TypedDict, total=False):
    """How much a cache keeps, how long it asks, and how many hits it audits."""

    key_type: type[UserKey]
    limit: int
    limit_bytes: int
    audit: float
    patience: float
    write_patience: float
    credentials: Credentials | None


class CacheClient(Enterable[CacheEngine]):
    """One client of servers: what both forms of a cache use."""

    def __init__(
        self,
        config: CacheConfig,
        board: CacheBoard,
        codec: ValueCodec[Any],
        environment: Environment,
        lookup: Lookup | None,
    ) -> None:
        self.board = board
        self.codec = codec

        def make() -> CacheEngine:
            follow = None
            if lookup is not None:
                board.keys = board.keys.within(lookup.pool_kind)
                follow = lookup.follow_caches
            return CacheEngine(config, board, codec.decode, environment, ENTER_SECONDS, follow)

        super().__init__(WHAT, board, make)

    def fetch(self, key: UserKey) -> "Future[Any]":
        """Begin to ask for an object."""
        self._check_usable()
        return self._engine.want(self.board.keys.key(key))

    def write(self, key: UserKey, value: object) -> "Future[None]":
        """Begin to write it."""
        self._check_usable()
        return self._engine.write(self.board.keys.key(key), self.codec.encode(key, value))

    def saw(self, key: UserKey, as_of: AsOf) -> "Future[None]":
        """Begin to read nothing older."""
        self._check_usable()
        if not is_as_of(as_of):
            raise ConfigurationError(
                f"as_of is what `cache.proof(key).as_of` returned somewhere, not {shown(as_of)}"
            )
        return self._engine.saw(self.board.keys.key(key), as_of)

    def stats(self) -> dict[str, int]:
        return {} if self._made is None else self._made.stats()

    @property
    def state(self) -> str:
        """The cache's state, in a word or two."""
        return self._state


class BlockingCache(Hits[V]):
    """A cache for threads: `get`, `write` and `saw` block. `with Cache(...)` gives one, and so does
    `cache.in_threads` where the cache was entered with `async with`.
    """

    def __init__(self, client: CacheClient) -> None:
        super().__init__(client.board)
        self._client = client

    def get(self, key: UserKey) -> V | None:
        """See `Cache.get`. Blocks if the server must be asked."""
        found = self.peek(key)
        if found is not MISSING:
            return found
        fetched: V | None = self._client.fetch(key).result()
        return fetched

    def write(self, key: UserKey, value: V) -> None:
        """See `Cache.write`. Blocks."""
        self._client.write(key, value).result()

    def saw(self, key: UserKey, as_of: AsOf) -> None:
        """See `Cache.saw`. Blocks."""
        self._client.saw(key, as_of).result()

    def stats(self) -> dict[str, int]:
        """Counts since the cache was entered, of all its threads and coroutines together."""
        return self._client.stats()

    def __repr__(self) -> str:
        return f"<Cache: {self._client.state}>"


class Cache(Hits[V]):
    """A near cache of the objects of one volume, and no hit is older than the last completed write.

    `server` is the URL of a `CacheServer`; or a Lookup, already entered, of a pool whose owners
    have a `volume`: then the cache reads each key at its owner.

    `value_type` and `key_type` are those of the `Volume`. Values are decoded once and shared by all
    readers, so they should be frozen. The cache keeps at most `limit` entries, of `limit_bytes` in
    all: the least recently read entries make room.

    `audit` is a share of the hits, such as 0.001: for these the server loads the object again, and
    `stats()["stale_hits"]` counts how often it was different. It must stay 0. It does not if
    something changes objects behind the server's back, or readers change the values they share;
    under a volume with mode="best effort" it counts what that mode allows.

    Enter it with `async with`, or with `with`, which returns a `BlockingCache`. You may enter it
    before its server is up: until then, reads raise `Unreachable` after `patience` seconds. Raises
    ConfigurationError if an argument cannot be used.
    """

    @overload
    def __init__(
        self,
        server: str | Lookup,
        *,
        value_type: type[V],
        _environment: Environment | None = ...,
        **options: Unpack[CacheOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        server: str | Lookup,
        *,
        value_type: Any = ...,  # noqa: ANN401  # such as a union
        _environment: Environment | None = ...,
        **options: Unpack[CacheOptions],
    ) -> None: ...

    def __init__(
        self,
        server: str | Lookup,
        *,
        value_type: Any = Any,
        _environment: Environment | None = None,
        **options: Unpack[CacheOptions],
    ) -> None:
        check_known(options, CacheOptions, "Cache")
        environment = _environment or environment_here(options.get("credentials"))
        codec: ValueCodec[V] = ValueCodec(value_type, "a Cache")
        config = CacheConfig(
            server="" if isinstance(server, Lookup) else checked_server(server),
            patience_ns=_nanoseconds("patience", options.get("patience", PATIENCE_SECONDS)),
            write_patience_ns=_nanoseconds(
                "write_patience", options.get("write_patience", WRITE_PATIENCE_SECONDS)
            ),
        )
        board = CacheBoard(
            ObjectKeys(options.get("key_type", str)),
            codec.decode,
            environment.clock,
            checked_count("limit", options.get("limit", LIMIT)),
            checked_count("limit_bytes", options.get("limit_bytes", LIMIT_BYTES)),
            HitSampler(checked_share("audit", options.get("audit", 0.0)), environment.random()),
        )
        super().__init__(board)
        lookup = server if isinstance(server, Lookup) else None
        if lookup is not None:
            environment.secret = lookup.secret
        self._client = CacheClient(config, board, codec, environment, lookup)

    async def get(self, key: UserKey) -> V | None:
        """The object as it was at an instant between this call and its return; None if there is no
        such object.

        A hit is answered from memory at once. Concurrent calls for the same object share one fetch.
        Raises Unreachable if the server does not answer, LoadFailed if it could not read the
        object, and KeyTypeError for a key of another type.
        """
        # `peek`, written out: a call more would be a fifth of the whole.
        try:
            found = self._there[key]
        except (KeyError, TypeError):
            found = None
        if found is not None:
            lease = found.lease
            until = lease.until
            if found.is_live:
                clock = self._clock
                if until > clock() < found.until:
                    lease.hits += 1
                    found.was_read = True
                    return found.value  # type: ignore[no-any-return]  # as in `peek`
        fetched: V | None = await awaited(self._client.fetch(key))
        return fetched

    async def write(self, key: UserKey, value: V) -> None:
        """Have the server's `store` take `value`: when this returns, nobody reads an older one.

        Raises OutcomeUnknown if no answer came, or `store` raised: the value may have been written,
        or may still be. Raises Unreachable or Busy if nothing was begun, and ValueTypeError for a
        value that would not arrive unchanged, or is too large.
        """
        await awaited(self._client.write(key, value))

    async def saw(self, key: UserKey, as_of: AsOf) -> None:
        """Once this returns, no read of `key` is older than `as_of`, which is the `as_of` of a
        `proof` that this or another process has had: this cache misses nothing that somebody has
        seen.
        """
        await awaited(self._client.saw(key, as_of))

    def stats(self) -> dict[str, int]:
        """Counts since it was entered, and its present size: hits, entries, bytes, messages. Hits
        of several threads are counted without a lock, so a few may be missed.
        """
        return self._client.stats()

    @property
    def in_threads(self) -> BlockingCache[V]:
        """The same cache for the threads of this process, where `get` and `write` block."""
        return BlockingCache(self._client)

    def close(self) -> Awaitable[None]:
        """Leave: what the end of the `with` block does. A second time does nothing.

        Begins at once. Blocks in the blocking form; in the async form, await what it returns.
        """
        return self._client.close()

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        await self._client.__aexit__(kind, error, trace)

    def __enter__(self) -> BlockingCache[V]:
        self._client.__enter__()
        return self.in_threads

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._client.__exit__(kind, error, trace)

    def __repr__(self) -> str:
        return f"<Cache: {self._client.state}>"


def _nanoseconds(name: str, given: float) -> int:
    return seconds(checked_seconds(name, given))


def is_as_of(given: object) -> bool:
    """Whether it is an `as_of` with all its numbers: another process may have made it."""
    return isinstance(given, AsOf) and all(type(part) is int for part in astuple(given))


def checked_server(server: object) -> str:
    """The URL of a cache's server."""
    if not isinstance(server, str):
        raise useless("server", server, "it is neither a str nor a Lookup", OF, EXAMPLE)
    return checked("server", server, OF, EXAMPLE)


async def awaited(future: "Future[Any]") -> Any:  # noqa: ANN401  # of whatever it is
    """Await a future of another thread."""
    await wait_for(future)
    return future.result()
