"""`tenure gateway`: the process where clients connect, until a signal ends it."""

import asyncio
import logging
import os
import signal
import socket
import ssl
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from tenure.base.hosts import check_trusted, is_loopback
from tenure.cli.asking import ManagerUrls
from tenure.cli.gateway_options import GatewayOptions
from tenure.cli.long_run import BRIEF, ReportOptions, run_long, told_to_end, until_one_ends
from tenure.cli.member_routes import MemberRoutes
from tenure.client.arguments import checked_seconds
from tenure.errors import ConfigurationError
from tenure.gateway.admin_pages import AdminPages
from tenure.gateway.gateway import HttpGateway
from tenure.gateway.gateway_port import LIMITS, GatewayPort
from tenure.gateway.passed_headers import TrustedProxies
from tenure.gateway.routes_file import RouteSources
from tenure.gateway.take_over import STARTS_SECONDS, FormerGateway, GatewaySuccession
from tenure.gateway.targets import TargetSettings
from tenure.member.listener import bound, checked_listen, url_of
from tenure.transport.bounded_port import log_refused
from tenure.transport.credentials import Credentials
from tenure.transport.tls import ServerTls

logger = logging.getLogger("tenure.gateway")


def gateway(
    *,
    manager: ManagerUrls = None,
    options: GatewayOptions | None = None,
    report: ReportOptions = BRIEF,
) -> None:
    """Run a gateway: it passes each request to the process that owns its key."""
    options = options or GatewayOptions()
    report.log()
    # Of its own level: strangers write these lines, as many as they like.
    level = logging.INFO if options.access_log else logging.WARNING
    logging.getLogger("tenure.gateway.access").setLevel(level)
    run_long(lambda: _run(options, manager, report))


async def _run(options: GatewayOptions, managers: list[str] | None, report: ReportOptions) -> None:
    told, tls = told_to_end(), _checked_tls(options)
    sources = RouteSources(options.route, options.routes, options.rest)
    routes = sources.read()
    settings = TargetSettings(
        managers=",".join(managers) if managers else None,
        credentials=Credentials.from_environment(),
        trusted=TrustedProxies(options.trust),
        deadline=checked_seconds("--deadline", options.deadline),
        answer_seconds=checked_seconds("--answer-seconds", options.answer_seconds),
    )
    async with AsyncExitStack() as stack:
        before = None if options.take_over is None else FormerGateway.at(options.take_over)
        made = HttpGateway(routes, settings, drain=options.drain)
        stack.push_async_callback(made.close)
        await _hold_sockets(made, options)
        if before is not None:
            await made.until_known(settings.deadline)
        listening = _listening(before, "clients", options.listen)
        inside = _admin_socket(before, options)
        url = url_of(listening, "http" if tls is None else "https")
        admin = None if inside is None else url_of(inside, "http")
        succession = GatewaySuccession({"clients": listening, "admin": inside}, made.pass_on)
        await stack.enter_async_context(made.listening(listening, tls))
        if inside is not None:
            port = GatewayPort(AdminPages(made).serve, log_refused, None, LIMITS)
            port.open(inside)
            stack.push_async_callback(port.close, 0.0)
        if options.take_over is not None:
            stack.push_async_callback(succession.close)
            await _succeed(before, made, succession, options.take_over, stack)
        reload = _reload_on_signal(made, sources)
        if options.member_routes:
            following = asyncio.create_task(MemberRoutes(managers, sources, reload).follow())
            stack.callback(following.cancel)
        text = f"gateway at {url}" + (f", its admin port at {admin}" if admin else "")
        report.tell("listening", text, url=url, admin=admin, pid=os.getpid())
        await until_one_ends(told.wait(), succession.is_over.wait())
    report.tell("stopped", "stopped")


async def _succeed(
    before: FormerGateway | None,
    made: HttpGateway,
    succession: GatewaySuccession,
    path: Path,
    stack: AsyncExitStack,
) -> None:
    """Take the place of the gateway before, if there is one, and wait for a successor."""
    if before is not None:
        has_come = asyncio.Event()

        def come() -> None:
            if not has_come.is_set():
                has_come.set()
                succession.open(path)

        taking = asyncio.create_task(before.relieve(made, come))
        stack.callback(taking.cancel)
        coming = asyncio.create_task(has_come.wait())
        await asyncio.wait(
            {taking, coming}, return_when=asyncio.FIRST_COMPLETED, timeout=STARTS_SECONDS
        )
        coming.cancel()
        come()
    else:
        succession.open(path)


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
    if options.take_over is not None and not where.endswith(":0"):
        raise ConfigurationError(
            f"--sockets-listen {where} is taken while a gateway takes over from another: with "
            "--take-over say port 0, and each has a port of its own"
        )
    for pool in options.sockets:
        held = GatewaySockets(made.pool(pool))
        await held.listen(where, options.sockets_address)
        made.hold(pool, held)


def _listening(before: FormerGateway | None, name: str, where: str) -> socket.socket:
    return (before and before.listening(name, where)) or bound(where)


def _admin_socket(before: FormerGateway | None, options: GatewayOptions) -> socket.socket | None:
    if options.admin is None:
        return None
    checked = checked_listen(options.admin, None, insecure=options.insecure)
    return _listening(before, "admin", checked)


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


def _reload_on_signal(made: HttpGateway, sources: RouteSources) -> Callable[[], None]:
    def reload() -> None:
        try:
            made.reroute(sources.read())
        except ConfigurationError as error:
            logger.error("the routes stay as they were: %s", error)  # noqa: TRY400  # it says all
        else:
            logger.warning("the routes were read again")

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload)
    return reload
