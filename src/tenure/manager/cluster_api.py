"""The part of the JSON API that is about clusters: making them, and what their rings are."""

import secrets
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec
from aiohttp import web

from tenure.base.numbers import Number
from tenure.manager.http_errors import (
    HttpRefusal,
    Short,
    as_json,
    check_is_json,
    decoded_body,
    whole_number,
)
from tenure.manager.steering_api import Asking
from tenure.protocol.topology.answers import (
    ClusterForgotten,
    ClusterMade,
    ClustersListed,
    MovesRead,
    RingRead,
    UpkeepRead,
)
from tenure.protocol.topology.questions import (
    CreateCluster,
    DeleteCluster,
    ListClusters,
    ReadMoves,
    ReadRing,
    ReadUpkeep,
)
from tenure.protocol.topology.records import PLACEMENT_FORMS, Placement

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

ID_BITS = 63


class NewCluster(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /v1/clusters."""

    name: Short
    placement: Short = "3"
    first_nodes: Number = 0
    """The number of first nodes: as many as a range has replicas, if there are fewer."""
    dry_run: bool = False


class ClusterApi:
    """The handlers."""

    def __init__(self, asking: Asking) -> None:
        self.asking = asking

    def add_routes(self, router: web.UrlDispatcher) -> list[str]:
        """Put the handlers under their paths, which are returned."""
        one = "/v1/clusters/{cluster:[^/]+}"
        router.add_get("/v1/clusters", self.clusters)
        router.add_post("/v1/clusters", self.create)
        router.add_delete(one, self.delete)
        router.add_get(f"{one}/ring", self.ring)
        router.add_get(f"{one}/moves", self.moves)
        router.add_get(f"{one}/upkeep", self.upkeep)
        reading = ("", "/ring", "/moves", "/upkeep")
        return ["/v1/clusters", *(f"/v1/clusters/{{cluster}}{path}" for path in reading)]

    async def clusters(self, request: web.Request) -> web.Response:
        return as_json(await self.asking.ask(ListClusters(), ClustersListed))

    async def create(self, request: web.Request) -> web.Response:
        """Make a cluster; nothing happens if there is just such a cluster already."""
        check_is_json(request)
        way_out = f'the body is {{"name": ..., "placement": ...}}; a placement is {PLACEMENT_FORMS}'
        body = decoded_body(await request.read(), NewCluster, way_out)
        try:
            placement = Placement.read(body.placement)
        except ValueError as error:
            raise HttpRefusal(400, str(error), way_out) from error
        wanted = CreateCluster(
            cluster=body.name,
            id=secrets.randbits(ID_BITS) or 1,
            placement=placement,
            first_nodes=body.first_nodes,
            dry_run=body.dry_run,
        )
        made = await self.asking.ask(wanted, ClusterMade)
        return as_json(made, 201 if made.created and not made.dry_run else 200)

    async def delete(self, request: web.Request) -> web.Response:
        """Forget a cluster."""
        written = request.query.get("dry_run", "false")
        if written not in ("true", "false"):
            raise HttpRefusal(400, f"dry_run={written}", "give dry_run=true or dry_run=false")
        name = request.match_info["cluster"]
        question = DeleteCluster(cluster=name, dry_run=written == "true")
        return as_json(await self.asking.ask(question, ClusterForgotten))

    async def ring(self, request: web.Request) -> web.Response:
        """The ring, its nodes and ranges, and the change that runs."""
        name = request.match_info["cluster"]
        return as_json(await self.asking.ask(ReadRing(cluster=name), RingRead))

    async def moves(self, request: web.Request) -> web.Response:
        """The moves that would help."""
        budget = whole_number(request, "budget", "a number", "give so many bytes")
        question = ReadMoves(cluster=request.match_info["cluster"], budget=budget)
        return as_json(await self.asking.ask(question, MovesRead))

    async def upkeep(self, request: web.Request) -> web.Response:
        """Answer which upkeep nodes do unasked."""
        name = request.match_info["cluster"]
        return as_json(await self.asking.ask(ReadUpkeep(cluster=name), UpkeepRead))
