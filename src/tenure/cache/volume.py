"""`Volume`: what caches read, as the process has it that serves it."""

from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeAlias, TypedDict, TypeVar, Unpack, cast, overload

from tenure.base.instants import seconds
from tenure.base.keys import UserKey
from tenure.base.names import shown
from tenure.cache.object_keys import KeysOf, ObjectKeys
from tenure.cache.owners_volume import OwnersVolume
from tenure.cache.volume_write import RunsWrites, VolumeWrite
from tenure.client.arguments import (
    LOOPBACK,
    checked_drain,
    checked_flag,
    checked_listening,
    checked_seconds,
    checked_told_address,
)
from tenure.client.callbacks import check_arity, needs
from tenure.client.entering import Done
from tenure.client.hand_off.likeness import ValueCodec
from tenure.client.options import check_known
from tenure.client.read_leases import GivesReads, ReadsOwner
from tenure.errors import ConfigurationError, UsageError
from tenure.protocol.volume.server.terms import Mode, Terms
from tenure.transport.credentials import Credentials

V = TypeVar("V")
Load: TypeAlias = Callable[[Any], object] | Callable[[Any, int], object]

TERM_SECONDS = 3.0
LEASE_SECONDS = 600.0
KEEP_SECONDS = 60.0


class VolumeOptions(TypedDict, total=False):
    """How long leases last, what outlives an owner, and where caches connect."""

    key_type: type[UserKey]
    durable: bool
    mode: Mode
    term: float
    lease: float
    keep: float
    listen: str | None
    address: str | None
    insecure: bool


class Volume(Generic[V]):
    """The objects that caches read, to be given to one `CacheServer`, or to one `Owner`.

    `load(key)` returns an object, or None where there is no such object; `store(key, value, fence)`
    writes one for a cache. Both may be coroutine functions, and are called where the server lives.
    A `load` that needs a second argument, as `load(key, fence)` does, gets the number below which
    its store must refuse writes of this object from before it is read: a dead owner's last write
    may still be on its way there.

    `term` is how many seconds a write waits at most for a cache that does not answer; caches renew
    as often. `lease` is how long a cache keeps an object without asking about it, and `keep` how
    long the server remembers what a silent cache has missed. With `mode="best effort"` writes do
    not wait for caches, and a cache may be behind by less than `term`.

    `durable` says that an owner's objects do not die with the owner: after a crash the next owner
    then reads at once, and only its writes wait. Caches connect to an owner at `listen`
    ("HOST:PORT"); by default at a free port of the host that its own address names. `address` is
    the URL under which caches reach that port, if it is a different one. If other machines can
    reach the port, `insecure` must say that you trust everybody there.

    Raises ConfigurationError for arguments that cannot be used.
    """

    @overload
    def __init__(
        self,
        load: Load,
        store: Callable[[Any, Any, int], object] | None = ...,
        *,
        value_type: type[V],
        **options: Unpack[VolumeOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        load: Load,
        store: Callable[[Any, Any, int], object] | None = ...,
        *,
        value_type: Any = ...,  # noqa: ANN401  # such as a union
        **options: Unpack[VolumeOptions],
    ) -> None: ...

    def __init__(
        self,
        load: Load,
        store: Callable[[Any, Any, int], object] | None = None,
        *,
        value_type: Any = Any,
        **options: Unpack[VolumeOptions],
    ) -> None:
        check_known(options, VolumeOptions, "Volume")
        self.load = _loading(load)
        """The function that loads an object, given its key and the fence."""
        self.store = None if store is None else _checked("store", store, 3)
        self.codec: ValueCodec[V] = ValueCodec(value_type, "a Volume")
        self._key_type = options.get("key_type", str)
        self.durable = checked_flag("durable", options.get("durable", False))
        self.keys: ObjectKeys = ObjectKeys(self._key_type)
        mode = options.get("mode", "strong")
        if mode not in ("strong", "best effort"):
            raise ConfigurationError(f'mode is "strong" or "best effort", not {shown(mode)}')
        self.terms = Terms(
            term_ns=seconds(checked_seconds("term", options.get("term", TERM_SECONDS))),
            lease_ns=seconds(checked_seconds("lease", options.get("lease", LEASE_SECONDS))),
            keep_ns=seconds(checked_drain(options.get("keep", KEEP_SECONDS), "keep")),
            mode=mode,
        )
        self.address = checked_told_address(options.get("address"), "")
        self._insecure = checked_flag("insecure", options.get("insecure", False))
        self._asks_for_certificates = Credentials.from_environment().mutual
        self._listen = options.get("listen")
        self.listens(LOOPBACK)
        self._runs: RunsWrites | None = None

    # --- for the application ---

    def write(self, *keys: UserKey) -> VolumeWrite:
        """`async with volume.write("row-7") as write:`, or `with` in threads: the body changes
        these objects, and while it runs no cache serves an old one.

        Entering waits until every cache that may read one of them has let go of it: a round trip,
        or `term` and a twelfth if a cache does not answer. Writes of one key run one by one. In the
        body, `write.fence` is the number below which a store may refuse late writes.

        Entering raises ClosedError if the server is closing, and Busy if too many writes wait;
        nothing was begun then.
        """
        if not keys:
            raise UsageError("a write names the keys that it changes: volume.write('row-7')")
        return VolumeWrite(self.runs, tuple(map(self.keys.key, keys)), keys)

    def changed(self, *keys: UserKey) -> Awaitable[None]:
        """Say that something else has changed these: once this returns, no cache serves an old one.

        Blocks in the blocking form; in the async form, await what it returns.
        """
        write = self.write(*keys)
        if self.runs.is_async:
            return write.pass_through()
        with write:
            return Done()

    # --- for the server ---

    def listens(self, at: str, *, is_reachable: bool = True) -> str:
        """The address at which an owner takes caches that serves at the address `at`."""
        insecure = self._insecure or self._asks_for_certificates or not is_reachable
        return checked_listening(self._listen, at, self.address, insecure=insecure, of="")

    @property
    def runs(self) -> RunsWrites:
        """The runner of the volume. Raises UsageError if there is none."""
        if self._runs is None:
            raise UsageError(
                "this Volume is not served yet: pass it to a CacheServer, or to an Owner as "
                "volume, and use it inside `async with` or `with`"
            )
        return self._runs

    def reads_of(self, owner: ReadsOwner) -> GivesReads:
        """Read leases of what `owner` holds; `Owner` calls it."""
        reads = OwnersVolume(self, owner)
        self.serve(reads.engine, owner.kind)
        return reads

    def serve(self, runs: RunsWrites, of: KeysOf) -> None:
        """Let `runs` serve the volume from here on, with keys of the kind `of`."""
        before = self._runs
        if before is not None and not before.has_ended():
            raise ConfigurationError(
                "this Volume is served already: give each CacheServer, and each Owner, its own"
            )
        self.keys = ObjectKeys(self._key_type, of)
        self._runs = runs


def _loading(load: Load) -> Callable[[Any, int], object]:
    """`load`, called with the fence if it needs one; `dict.get`, for one, does not."""
    if needs(load, 2):
        return cast("Callable[[Any, int], object]", load)
    alone = _checked("load", load, 1)
    return lambda key, _fence: alone(key)


def _checked(name: str, call: object, arguments: int) -> Callable[..., object]:
    if not callable(call):
        raise ConfigurationError(f"{name} is a function or a coroutine function, not {shown(call)}")
    check_arity(name, call, arguments)
    return call
