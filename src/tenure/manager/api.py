"""The JSON API: pools, tables, who has a key, who the owners are, and the manager's state.

Only the leader answers questions that need the table; a standby says who leads, with status 503.
(421 is an owner's answer: only an owner may say that a request for a key was misdirected.)
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Annotated, TypeAlias, TypeVar

import msgspec
from aiohttp import web
from msgspec.structs import replace

from tenure.base.keys import PoolKind
from tenure.errors import ConfigurationError
from tenure.manager.access.gate import wants_page
from tenure.manager.access.roles import ANYBODY, Permit
from tenure.manager.access.tokens import TokenFile
from tenure.manager.cluster_api import ClusterApi
from tenure.manager.engine import ManagerEngine
from tenure.manager.entities_api import EntitiesApi
from tenure.manager.entity_files import EntityFiles
from tenure.manager.http_errors import (
    HttpRefusal,
    Short,
    as_json,
    check_is_json,
    cut,
    decoded_body,
    whole_number,
)
from tenure.manager.inspections import Inspections
from tenure.manager.journal_health import journal_answer
from tenure.manager.large_answers import LargeAnswers, Spend
from tenure.manager.pool_spec import HexKey, WrittenKey, key_of, pool_spec
from tenure.manager.status import VERSION, status_of
from tenure.manager.steering_api import SteeringApi, asked_key, with_any_name
from tenure.manager.tier_metrics import ReadCluster
from tenure.protocol.lease.answers import (
    Answer,
    CommandFailed,
    Impossible,
    JournalDecided,
    Location,
    NotLeading,
    Owners,
    PoolDeleted,
    PoolMade,
    Pools,
    QuestionFailed,
    TableAnswer,
)
from tenure.protocol.lease.leader.events import (
    DeletePool,
    ListOwners,
    ListPools,
    Locate,
    Question,
    ReadTable,
    Resolve,
)
from tenure.protocol.lease.limits import SPLIT_POINTS_PER_POOL
from tenure.protocol.lease.steering_events import Steer
from tenure.protocol.topology.answers import ClusterRefused, ClustersListed, RingRead, UpkeepRead
from tenure.protocol.topology.questions import ListClusters, ReadRing, ReadUpkeep
from tenure.transport.peers import Peers

A = TypeVar("A", bound=Answer)
JournalInHex: TypeAlias = Annotated[
    str, msgspec.Meta(max_length=16, pattern=r"^[0-7][0-9a-f]{15}\Z")
]
Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


OPENAPI_PATH, RESOLVE_PATH = "/v1/openapi.json", "/v1/resolve"
HOUR_PATH, HOTTEST_PATH = "/v1/pools/{pool}/hour", "/v1/pools/{pool}/hottest"


class Decision(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /v1/resolve."""

    over: JournalInHex
    """The journal that is over, in hexadecimal."""
    confirmed_stopped: bool = False
    dry_run: bool = False


class NewPool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /v1/pools."""

    name: Short
    kind: Short
    split_points: Annotated[
        list[WrittenKey | HexKey], msgspec.Meta(max_length=SPLIT_POINTS_PER_POOL)
    ] = []


class Api:
    """The handlers of the JSON API."""

    def __init__(
        self,
        engine: ManagerEngine,
        peers: Peers,
        journal_url: str,
        tokens: TokenFile | None,
        *,
        shows_viewers: bool = False,
    ) -> None:
        self.engine = engine
        self.peers = peers
        self.journal_url = journal_url
        self.tokens = tokens
        self._large = LargeAnswers()
        self._permit_of: Callable[[web.Request], Permit] = lambda _: ANYBODY
        self.inspections = Inspections(peers)
        self._shows_viewers = shows_viewers

    def add_routes(
        self, router: web.UrlDispatcher, permit_of: Callable[[web.Request], Permit]
    ) -> None:
        """Put the handlers under their paths."""
        self._permit_of = permit_of
        paths: dict[str, Handler] = {
            "/": self.index,
            "/healthz": self.healthz,
            "/readyz": self.readyz,
            "/metrics": self.metrics,
            "/v1/status": self.status,
            "/v1/pools": self.pools,
            "/v1/pools/{pool}/table": self.table,
            "/v1/pools/{pool}/locate": self.locate,
            "/v1/pools/{pool}/owners": self.owners,
        }
        for path, handler in paths.items():
            router.add_get(with_any_name(path), handler)
        router.add_post(RESOLVE_PATH, self.resolve)
        router.add_post("/v1/pools", self.create_pool)
        router.add_delete(with_any_name("/v1/pools/{pool}"), self.delete_pool)
        steering = SteeringApi(self, permit_of).add_routes(router)
        clusters = ClusterApi(self).add_routes(router)
        entities_api = EntitiesApi(
            self, self.inspections, permit_of, shows_viewers=self._shows_viewers
        )
        entities = entities_api.add_routes(router)
        entities += EntityFiles(self, entities_api).add_routes(router)
        others = OPENAPI_PATH, RESOLVE_PATH, "/v1/managers", "/v1/owner", "/v1/lookup", "/v1/node"
        pools = "/v1/pools/{pool}", HOUR_PATH, HOTTEST_PATH
        self._paths = sorted([*paths, *pools, *steering, *clusters, *entities, *others])

    # --- the manager itself ---

    async def index(self, request: web.Request) -> web.Response:
        """List the API; a browser is shown the pages."""
        if wants_page(request):
            raise web.HTTPFound("/dashboard/")
        return as_json({"tenure": VERSION, "role": self.engine.view.role, "paths": self._paths})

    async def healthz(self, request: web.Request) -> web.Response:
        """Say that the process is up."""
        return as_json({"status": "up"})

    async def readyz(self, request: web.Request) -> web.Response:
        """Say whether the manager leads, or knows who does."""
        view = self.engine.view
        if view.is_proven or (view.role == "standing by" and view.leader):
            return as_json({"status": view.role})
        raise HttpRefusal(
            503, "this manager neither leads nor knows who does", "ask again in a second or two"
        )

    async def status(self, request: web.Request) -> web.Response:
        """The state of the manager, as it sees itself."""
        health = await journal_answer(self.engine.journal)
        oldest = self.tokens.oldest if self.tokens else ""
        return as_json(status_of(self.engine, self.peers, self.journal_url, health, oldest))

    async def metrics(self, request: web.Request) -> web.Response:
        """Numbers for Prometheus."""
        try:
            from tenure.observe.prometheus import exposition  # noqa: PLC0415  # of an extra
        except ImportError as error:
            raise HttpRefusal(501, str(error), "install it where the manager runs") from error
        engine, view = self.engine, self.engine.view
        pools: list[Answer] = []
        clusters: list[ReadCluster] = []
        async with self.turn(request) as spend:
            with suppress(TimeoutError):  # a standby knows none of either
                pools = [await engine.ask(ListOwners(pool)) for pool in view.pools]
                clusters = [each async for each in self._clusters()]
            owners = tuple(pool for pool in pools if isinstance(pool, Owners))
            spend(sum(map(ranges_of, owners)))
        families = engine.metrics.families(
            view, engine.observer, self.peers, owners, tuple(clusters)
        )
        body, content_type = exposition(families, request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def _clusters(self) -> AsyncIterator[ReadCluster]:
        listed = await self.engine.ask(ListClusters())
        for each in listed.clusters if isinstance(listed, ClustersListed) else ():
            ring = await self.engine.ask(ReadRing(cluster=each.name))
            upkeep = await self.engine.ask(ReadUpkeep(cluster=each.name))
            if isinstance(ring, RingRead) and isinstance(upkeep, UpkeepRead):
                yield ReadCluster(ring, upkeep)

    async def resolve(self, request: web.Request) -> web.Response:
        """Take the operator's decision that a journal is over, where two have living leaders."""
        check_is_json(request)
        way_out = 'the body is {"over": JOURNAL, "confirmed_stopped": false, "dry_run": false}'
        body = decoded_body(await request.read(), Decision, way_out)
        command = Resolve(int(body.over, 16), body.confirmed_stopped, body.dry_run)
        return as_json(await self.ask(command, JournalDecided))

    # --- pools ---

    async def pools(self, request: web.Request) -> web.Response:
        return as_json(await self.ask(ListPools(), Pools))

    async def create_pool(self, request: web.Request) -> web.Response:
        """Make a pool; nothing happens if there is just such a pool already."""
        check_is_json(request)
        way_out = 'the body is {"name": ..., "kind": "hashed" or "ordered", "split_points": []}'
        body = decoded_body(await request.read(), NewPool, way_out)
        try:
            points = [key_of(point) for point in body.split_points]
            question = pool_spec(body.name, body.kind, points)
        except ConfigurationError as error:
            raise HttpRefusal(400, str(error), way_out) from error
        made = await self.ask(question, PoolMade)
        return as_json(made, 201 if made.created else 200)

    async def delete_pool(self, request: web.Request) -> web.Response:
        """Forget a pool that has no owners."""
        written = request.query.get("dry_run", "false")
        if written not in ("true", "false"):
            raise HttpRefusal(400, f"dry_run={written}", "give dry_run=true or dry_run=false")
        question = DeletePool(request.match_info["pool"], written == "true")
        return as_json(await self.ask(question, PoolDeleted))

    async def table(self, request: web.Request) -> web.Response:
        """The lease table, or what changed in it."""
        way_out = "give a number from 0 on, or leave it out"
        since = whole_number(request, "since", "an LSN", way_out)
        question = ReadTable(request.match_info["pool"], since, _journal(request))
        async with self.turn(request) as spend:
            found = await self.ask(question, TableAnswer)
            spend(len(found.entries))
            return as_json(found)

    async def owners(self, request: web.Request) -> web.Response:
        """The owners of a pool."""
        async with self.turn(request) as spend:
            found = await self.ask(ListOwners(request.match_info["pool"]), Owners)
            spend(ranges_of(found))
        owners = (
            replace(owner, protocol=self.peers.version(connection))
            for owner, connection in zip(found.owners, found.connections, strict=True)
        )
        return as_json(Owners(found.pool, tuple(owners)))

    async def locate(self, request: web.Request) -> web.Response:
        """Answer which owner has a key."""
        pool = request.match_info["pool"]
        key = asked_key(request, self.pool_kind(pool))
        return as_json(await self.ask(Locate(pool, key), Location))

    # --- asking ---

    def turn(self, request: web.Request) -> AbstractAsyncContextManager[Spend]:
        """The turn of whoever asks for what may be large."""
        permit = self._permit_of(request)
        return self._large.turn((request.remote or "") if permit is ANYBODY else permit.who)

    def pool_kind(self, pool: str) -> PoolKind:
        """The kind of a pool; hashed if it is not known."""
        return self.engine.view.pools.get(pool) or "hashed"

    async def ask(self, question: Question, wanted: type[A]) -> A:
        """The machine's answer, of the type that is wanted; otherwise HttpRefusal is raised."""
        try:
            answer = await self.engine.ask(question)
        except TimeoutError:
            raise HttpRefusal(
                503,
                "this manager could not answer in time: its journal is slow, or it no longer leads",
                "ask again",
            ) from None
        match answer:
            case NotLeading(leader=None):
                raise HttpRefusal(503, "no manager leads yet", "ask again in a second or two")
            case NotLeading(leader=leader):
                raise HttpRefusal(503, f"this manager stands by; {leader} leads", "ask it", leader)
            case ClusterRefused(why=why, way_out=way_out, missing=missing):
                raise HttpRefusal(404 if missing else 409, why, way_out)
            case QuestionFailed(why=why):
                way_out = "report it; the manager goes on, and its log has the same"
                raise HttpRefusal(500, f"the question failed: {why}", way_out)
            case CommandFailed(why=why):
                way_out = "nothing of it is kept, and the manager begins anew; report it"
                raise HttpRefusal(500, f"the command failed: {why}", way_out)
            case Impossible(why=why, missing=True, there=there):
                create = "create it: POST /v1/pools, or tenure pool create"
                way_out = "name one of those" if isinstance(question, DeletePool) else create
                raise HttpRefusal(404, why, way_out, there=there)
            case Impossible(why=why, way_out=way_out):
                raise HttpRefusal(409, why, way_out or _way_out(question))
        assert isinstance(answer, wanted), answer
        return answer


def ranges_of(found: Owners) -> int:
    """How many ranges the owners have, and how many they are themselves."""
    return len(found.owners) + sum(each.ranges for each in found.owners)


def _way_out(question: Question) -> str:
    if isinstance(question, Steer):
        return "name what is there"
    if isinstance(question, DeletePool):
        return "close its owners first, and delete it when they have left"
    return "use the pool as it is, or choose another name"


def _journal(request: web.Request) -> int | None:
    written = request.query.get("journal")
    try:
        return None if written is None else int(written, 16)
    except ValueError:
        way_out = "give the `journal` of the last answer, or leave it out"
        raise HttpRefusal(
            400, f"journal={cut(written or '')} is not the number of a journal", way_out
        ) from None
