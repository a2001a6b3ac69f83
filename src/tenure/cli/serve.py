"""`tenure serve`: one process of a service, until a signal ends it."""

import logging
import os
import re
import ssl
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from tenure.base.hosts import check_trusted, is_loopback
from tenure.cli.asking import ManagerUrls
from tenure.cli.long_run import BRIEF, ReportOptions, run_long, told_to_end
from tenure.cli.service_gate import ServiceGate, service_port
from tenure.cli.waiting import entered
from tenure.errors import ConfigurationError
from tenure.manager.access.pages import OwnNames
from tenure.manager.access.tokens import TokenFile
from tenure.manager.pool_spec import check_name
from tenure.member.listener import checked_listen
from tenure.services.catalogue import service_type
from tenure.services.service import DAY, Service, ServiceSettings
from tenure.services.serving import served
from tenure.transport.credentials import Credentials
from tenure.transport.tls import ServerTls

_PASSWORD = re.compile(r"//[^/@]*:[^@]*@|[?&]password=")
Flag = Annotated[bool, Parameter(negative="")]
Repeated = Annotated[tuple[str, ...], Parameter(negative="")]


@Parameter(name="*")
@dataclass(frozen=True)
class ServeOptions:
    """The options of `tenure serve`."""

    pool: str = ""
    "The pool of its keys, one for each instance of a service; by default the service's name."
    store: str | None = None
    """Where keys are kept to survive a crash: sqlite:FILE, postgresql://HOST/DATABASE,
    rocksdb:DIRECTORY, columns:URL,URL or cassandra:HOST,HOST/KEYSPACE.
    """
    manager: ManagerUrls = None
    listen: str = ""
    "HOST:PORT for clients; by default 127.0.0.1 and the service's port. Port 0 picks a free one."
    reuse_port: Flag = False
    "Share the port with the other processes of the service on this machine."
    ttl: float = 30 * DAY
    "How many seconds the service keeps a key that nobody refreshes."
    watch: Repeated = ()
    "A pool whose losses the queues report; for queues, and may be given several times."
    queues: Repeated = ()
    "A URL of the queues into which messages go; for pubsub, and may be given several times."
    queues_token: Path | None = None
    "A file with the token to present to these queues, if TENURE_TOKEN is not valid there."
    publish_to: Repeated = ()
    "A URL of the pubsub to which documents publish their changes; may be given several times."
    publish_token: Path | None = None
    "A file with the token to present to it, if TENURE_TOKEN is not valid there."
    reads: Literal["owner", "everywhere"] | None = None
    """Where documents are read: everywhere, in each process that is asked, or by their owner only.
    Documents that change more often than they are read cost less with owner.
    """
    stale_after: float | None = None
    """For documents: for how many seconds a process may answer with what it knew last, if the owner
    does not answer.
    """
    rules: str | None = None
    "The rules of feeds, as module:name."
    inward: Flag = False
    "Let URLs that users name lead to addresses that are not public, such as this machine's."
    members: str = "127.0.0.1:0"
    "HOST:PORT where the other processes of the service reach this one."
    address: str | None = None
    "The URL that they use, if it differs."
    insecure: Flag = False
    "Listen where other machines can reach it, and trust everybody there."
    known_as: Repeated = ()
    "Another host name that clients use; needed without --tokens. Can be repeated."
    tls_cert: Path | None = None
    "A PEM file with the certificate to present to clients; it is read again when it changes."
    tls_key: Path | None = None
    "The file with the key of the certificate."
    tls_client_ca: Path | None = None
    "A file with authorities: clients must have a certificate from one of them."
    tokens: Path | None = None
    "The file of tokens, made with `tenure token new`: clients must present one."


def serve(
    name: Literal["documents", "feeds", "pubsub", "queues"],
    /,
    *,
    options: ServeOptions | None = None,
    report: ReportOptions = BRIEF,
) -> None:
    """Run a process of a service. On SIGTERM it hands over its keys, and ends.

    Parameters
    ----------
    name
        Which service.
    """
    report.log()
    options = options or ServeOptions()
    kind = service_type(name)
    _warn_of_password(options.store or "")
    listen = checked_listen(options.listen or f"127.0.0.1:{kind.port}", "http://any", insecure=True)
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    tls, check = _guarded(options, host, int(port), options.pool or name)
    is_mutual = Credentials.from_environment().mutual
    checked_listen(
        options.members,
        options.address,
        insecure=options.insecure or is_mutual,
        name="--members",
    )
    said = vars(options)
    settings = ServiceSettings(
        **{each: said[each] for each in ServiceSettings.__struct_fields__ if each in said}
        | {"pool": options.pool or name, "managers": ",".join(options.manager or ()) or None}
    )

    def begin() -> Coroutine[Any, Any, None]:
        service, shared = kind(settings), options.reuse_port
        serving = served(
            service,
            host,
            int(port),
            service_port,
            reuse_port=shared,
            tls=tls,
            check=check,
            knows_peers=check.knows_peers,
        )
        return _run(service, serving, report)

    run_long(begin)


def _warn_of_password(store: str) -> None:
    if _PASSWORD.search(store):
        logging.getLogger("tenure.services").warning(
            "every user of this host can read the password that --store names: leave it out, and "
            "name a file that has it with ?passfile=PATH, or with PGPASSFILE"
        )


def _guarded(
    options: ServeOptions, host: str, port: int, pool: str
) -> tuple[ssl.SSLContext | None, ServiceGate]:
    """How clients are let in. Raises ConfigurationError where that is not safe, or cannot be."""
    check_name(pool)
    tls, tokens = None, None
    if options.tls_cert is not None and options.tls_key is not None:
        tls = ServerTls(options.tls_cert, options.tls_key, options.tls_client_ca).context()
    elif options.tls_cert or options.tls_key or options.tls_client_ca:
        raise ConfigurationError("TLS needs --tls-cert and --tls-key: one of them is missing")
    if options.tokens is not None:
        tokens = TokenFile(options.tokens)
        tokens.load()
    if not (is_loopback(host) or (tls and tokens)):
        missing = " and ".join(
            name
            for name, there in (("--tls-cert and --tls-key", tls), ("--tokens", tokens))
            if not there
        )
        insecure = (
            f"other machines can reach {host}, and everybody there could read and write "
            f"everything: give {missing}"
        )
        check_trusted(insecure, is_trusted=options.insecure)
        logging.getLogger("tenure.services").warning("insecure: %s", insecure)
    url = f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"
    names = OwnNames("service", url, options.known_as, is_loopback=is_loopback(host))
    return tls, ServiceGate(pool, names, tokens)


async def _run(
    service: Service[Any], serving: AbstractAsyncContextManager[str], report: ReportOptions
) -> None:
    told = told_to_end()
    beginning, end = f"starting {service.name}", f"ending {service.name}; it hands over first"
    async with entered(serving, beginning, end) as url:
        text = f"{service.name} of the pool {service.settings.pool!r} at {url}"
        report.tell("listening", text, url=url, pid=os.getpid())
        await told.wait()
    report.tell("stopped", "stopped")
