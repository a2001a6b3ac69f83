"""`tenure serve`: one process of a service, until a signal ends it."""

import asyncio
import json
import logging
import os
import signal
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from tenure.base.hosts import is_loopback
from tenure.cli.asking import ManagerUrls
from tenure.cli.manager import loop_factory, raise_file_limit
from tenure.errors import ConfigurationError
from tenure.member.listener import checked_listen
from tenure.services.catalogue import service_type
from tenure.services.service import DAY, Service, ServiceSettings
from tenure.services.serving import served

Flag = Annotated[bool, Parameter(negative="")]


@Parameter(name="*")
@dataclass(frozen=True)
class ServeOptions:
    """The options of `tenure serve`."""

    pool: str = ""
    "The pool of its keys, one for each instance; by default it has the name of the service."
    store: str | None = None
    "Where keys survive a crash: sqlite:FILE or postgresql://HOST/DATABASE; by default, nowhere."
    manager: ManagerUrls = None
    listen: str = ""
    "HOST:PORT for clients; by default 127.0.0.1 and the service's port. Port 0 takes a free one."
    reuse_port: Flag = False
    "Share the port with the other processes of the service on this machine."
    ttl: float = 30 * DAY
    "For how many seconds a key is kept that nobody refreshes."
    watch: tuple[str, ...] = ()
    "A pool whose losses are told; for queues, and may be given several times."
    queues: tuple[str, ...] = ()
    "A URL of the queues into which messages go; for pubsub, and may be given several times."
    rules: str | None = None
    "The rules of feeds, as module:name."
    inward: Flag = False
    "Let URLs that users name lead to addresses that are not public, such as this machine's."
    members: str = "127.0.0.1:0"
    "HOST:PORT where the other processes of the service reach this one."
    address: str | None = None
    "The URL at which they do, if it is another."
    insecure: Flag = False
    "Listen where other machines reach it, and trust everybody there."


def serve(
    name: Literal["documents", "feeds", "pubsub", "queues"],
    *,
    options: ServeOptions | None = None,
    log_level: Literal["debug", "info", "warning", "error"] = "warning",
    json_: Annotated[Flag, Parameter(name="--json")] = False,
) -> None:
    """Run a process of a service. SIGTERM hands over what it has, and ends it.

    Parameters
    ----------
    name
        Which service.
    log_level
        How much is logged, to standard error; warnings by default.
    json_
        Report what happens as JSON, an object a line; the first has the URL.
    """
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=log_level.upper())
    options = options or ServeOptions()
    kind = service_type(name)
    listen = checked_listen(options.listen or f"127.0.0.1:{kind.port}", "http://any", insecure=True)
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    if not (is_loopback(host) or options.insecure):
        raise ConfigurationError(
            f"other machines reach {host}, and whoever reaches a service can read and write "
            "everything: put a proxy before it that checks who asks, and listen on 127.0.0.1, or "
            "say with --insecure that everybody on that network is trusted"
        )
    settings = ServiceSettings(
        pool=options.pool or name,
        managers=",".join(options.manager) if options.manager else None,
        store=options.store,
        ttl=options.ttl,
        watch=tuple(options.watch),
        queues=tuple(options.queues),
        rules=options.rules,
        inward=options.inward,
        members=options.members,
        address=options.address,
        insecure=options.insecure,
    )
    raise_file_limit()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        service = kind(settings)
        runner.run(_run(service, host, int(port), reuse_port=options.reuse_port, as_json=json_))


async def _run(
    service: Service[Any], host: str, port: int, *, reuse_port: bool, as_json: bool
) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    async with served(service, host, port, reuse_port=reuse_port) as url:
        _tell(
            as_json,
            {"event": "listening", "url": url, "pid": os.getpid()},
            f"{service.name} of the pool {service.settings.pool!r} at {url}",
        )
        await stopping.wait()
    _tell(as_json, {"event": "stopped"}, "stopped")


def _tell(as_json: bool, event: dict[str, object], text: str) -> None:  # noqa: FBT001 - a switch
    print(json.dumps(event) if as_json else text, flush=True)
