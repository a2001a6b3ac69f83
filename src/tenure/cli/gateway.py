"""`tenure gateway`: the process where clients connect, until a signal ends it."""

import asyncio
import logging
import os
import signal
import ssl
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tenure.base.hosts import check_trusted, is_loopback
from tenure.cli.asking import ManagerUrls
from tenure.cli.long_run import (
    LogFormat,
    LogLevel,
    log_to_standard_error,
    run_long,
    tell,
    told_to_end,
)
from tenure.client.arguments import checked_seconds
from tenure.errors import ConfigurationError
from tenure.gateway.admin_pages import AdminPages
from tenure.gateway.gateway import HttpGateway
from tenure.gateway.gateway_port import LIMITS, GatewayPort
from tenure.gateway.passed_headers import TrustedProxies
from tenure.gateway.routes_file import read_routes
from tenure.gateway.targets import TargetSettings
from tenure.member.listener import bound, checked_listen, url_of
from tenure.transport.bounded_port import log_refused
from tenure.transport.credentials import Credentials
from tenure.transport.tls import ServerTls

Flag = Annotated[bool, Parameter(negative="")]
Repeated = Annotated[tuple[str, ...], Parameter(negative="")]
logger = logging.getLogger("tenure.gateway")


@Parameter(name="*")
@dataclass(frozen=True)
class GatewayOptions:
    """The options of `tenure gateway`."""

    listen: str = "127.0.0.1:8080"
    "HOST:PORT for clients. Port 0 picks a free one."
    route: Repeated = ()
    "PATH=POOL or PATH=URL, such as /rooms/{room}=rooms; the first that fits is taken."
    routes: Path | None = None
    "A file with further routes, one on each line; SIGHUP has it read again."
    manager: ManagerUrls = None
    admin: str | None = None
    "HOST:PORT for /healthz, /readyz and /metrics; without it there is no such port."
    deadline: float = 10.0
    "For how many seconds a request is tried that no owner takes."
    answer_seconds: float = 60.0
    "How long an owner may take until its answer begins."
    drain: float = 10.0
    "How long requests may go on after SIGTERM."
    trust: Repeated = ()
    "The address or network of a load balancer whose X-Forwarded headers are believed."
    sockets: Repeated = ()
    "A pool of entities whose WebSockets end at the gateway, and outlive the processes behind it."
    sockets_listen: str = "127.0.0.1:0"
    "HOST:PORT where the owners of these entities reach the gateway."
    sockets_address: str | None = None
    "The URL at which they do, if it is a different one."
    tls_cert: Path | None = None
    "A PEM file with the certificate to present to clients; it is read again when it changes."
    tls_key: Path | None = None
    "The file with the key of the certificate."
    insecure: Flag = False
    "Listen without TLS where other machines can reach it."
    access_log: Flag = False
    "Log a line for each request."


def gateway(
    *,
    options: GatewayOptions | None = None,
    log_level: LogLevel = "warning",
    log_format: LogFormat = "text",
    json_: Annotated[Flag, Parameter(name="--json")] = False,
) -> None:
    """Run a gateway: it passes each request to the process that owns its key.

    Parameters
    ----------
    log_level
        How much is logged, to standard error; warnings by default.
    log_format
        text, or json: one object per line, with the event, its place and its cause as fields.
    json_
        Report what happens as JSON, one object per line; the first has the URL.
    """
    options = options or GatewayOptions()
    log_to_standard_error(log_level, log_format)
    if options.access_log:
        logging.getLogger("tenure.gateway.access").setLevel(logging.INFO)
    run_long(lambda: _run(options, as_json=json_))


async def _run(options: GatewayOptions, *, as_json: bool) -> None:
    told, tls = told_to_end(), _checked_tls(options)
    routes = read_routes(options.route, options.routes)
    settings = TargetSettings(
        managers=",".join(options.manager) if options.manager else None,
        credentials=Credentials.from_environment(),
        trusted=TrustedProxies(options.trust),
        deadline=checked_seconds("--deadline", options.deadline),
        answer_seconds=checked_seconds("--answer-seconds", options.answer_seconds),
    )
    async with AsyncExitStack() as stack:
        made = HttpGateway(routes, settings, drain=options.drain)
        stack.push_async_callback(made.close)
        await _hold_sockets(made, options)
        listening = bound(options.listen)
        url = url_of(listening, "http" if tls is None else "https")
        await stack.enter_async_context(made.listening(listening, tls))
        admin = await _admin(stack, made, options)
        _reload_on_signal(made, options)
        text = f"gateway at {url}" + (f", its admin port at {admin}" if admin else "")
        tell("listening", text, as_json=as_json, url=url, admin=admin, pid=os.getpid())
        await told.wait()
    tell("stopped", "stopped", as_json=as_json)


async def _hold_sockets(made: HttpGateway, options: GatewayOptions) -> None:
    if not options.sockets:
        return
    try:
        from tenure.gateway.gateway_sockets import GatewaySockets
    except ImportError as error:
        raise ConfigurationError(
            f"--sockets needs the extra gateway: pip install 'tenure[gateway]' ({error})"
        ) from None
    is_safe = options.insecure or Credentials.from_environment().mutual
    where = checked_listen(
        options.sockets_listen, options.sockets_address, insecure=is_safe, name="--sockets-listen"
    )
    for pool in options.sockets:
        held = GatewaySockets(made.pool(pool))
        await held.listen(where, options.sockets_address)
        made.hold(pool, held)


async def _admin(stack: AsyncExitStack, made: HttpGateway, options: GatewayOptions) -> str | None:
    if options.admin is None:
        return None
    listening = bound(checked_listen(options.admin, None, insecure=options.insecure))
    port = GatewayPort(AdminPages(made).serve, log_refused, None, LIMITS)
    port.open(listening)
    stack.push_async_callback(port.close, 0.0)
    return url_of(listening, "http")


def _checked_tls(options: GatewayOptions) -> ssl.SSLContext | None:
    """How clients are let in. Raises ConfigurationError if that is not safe, or cannot be."""
    checked_listen(options.listen, "http://any", insecure=True, name="--listen")
    if (options.tls_cert is None) != (options.tls_key is None):
        raise ConfigurationError("TLS needs --tls-cert and --tls-key: one of them is missing")
    if options.tls_cert is not None and options.tls_key is not None:
        return ServerTls(options.tls_cert, options.tls_key, None).context()
    host = options.listen.rpartition(":")[0].strip("[]")
    if not is_loopback(host):
        insecure = (
            f"other machines can reach {host}, and everybody on the way could read what clients "
            "send: give --tls-cert and --tls-key"
        )
        check_trusted(insecure, is_trusted=options.insecure)
        logger.warning("insecure: %s", insecure)
    return None


def _reload_on_signal(made: HttpGateway, options: GatewayOptions) -> None:
    def reload() -> None:
        try:
            made.reroute(read_routes(options.route, options.routes))
        except ConfigurationError as error:
            logger.error("the routes stay as they were: %s", error)  # noqa: TRY400  # it says all
        else:
            logger.warning("the routes were read again")

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload)
