"""`tenure doctor`: looks at a set-up from here, and says what is wrong and what to do about it.

What is wrong with what it has seen is said by `checks`.
"""

import socket
import ssl
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from urllib.parse import urlsplit

import msgspec

from tenure.cli.asking import ASKING, AskingOptions, get, path, urls, why_not
from tenure.cli.checks import Examined, Finding, Port, examine
from tenure.cli.output import put, show
from tenure.cli.status import TIMEOUT_SECONDS, AskedManager, ask_all
from tenure.cli.waiting import waiting_for
from tenure.errors import TenureError
from tenure.protocol.lease.answers import Owners, OwnerSummary, Pools
from tenure.transport.credentials import Credentials

PORTS_AT_MOST = 200
AT_ONCE = 32


def doctor(*, how: AskingOptions = ASKING) -> int:
    """Check a set-up: managers, journal, clocks, versions, tokens, certificates, disk and ports.

    Exits with 1 if anything is wrong. What works now and will not for long is marked `soon`.
    """
    managers = urls(how.manager)
    with waiting_for(managers):
        findings = examine(_look(managers))
    if how.json:
        put(msgspec.json.encode(findings).decode())
    else:
        rows = ((each.check, each.result, _words(each)) for each in findings)
        show(("check", "result", "what"), rows, empty="")
    return int(any(each.result == "wrong" for each in findings))


def _words(finding: Finding) -> str:
    return f"{finding.what}. To fix it: {finding.way_out}" if finding.way_out else finding.what


def _look(managers: Sequence[str]) -> Examined:
    asked = ask_all(managers)
    seen = Examined(managers=asked, certificates=list(_certificates(asked)))
    pools = [pool for leader in seen.leaders[:1] for pool in _pools(leader.url)]
    return msgspec.structs.replace(seen, pools=pools, ports=_ports(pools))


def _pools(leader: str) -> list[tuple[str, Sequence[OwnerSummary]]]:
    """The owners of each pool; of none if the token is not one for reading them."""
    try:
        pools = get(leader, "/v1/pools", TIMEOUT_SECONDS).read(Pools).pools
        return [
            (each.name, get(leader, path(each.name, "owners"), TIMEOUT_SECONDS).read(Owners).owners)
            for each in pools
        ]
    except TenureError:
        return []


def _ports(pools: Sequence[tuple[str, Sequence[OwnerSummary]]]) -> list[Port]:
    """Each owner's address is tried, where it is one that can be."""
    wanted = [(pool, each) for pool, owners in pools for each in owners if _place(each.address)]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        errors = threads.map(_try_port, (each.address for _, each in wanted[:PORTS_AT_MOST]))
        return [
            Port(pool, each.name, each.address, error)
            for (pool, each), error in zip(wanted, errors, strict=False)
        ]


def _place(address: str) -> tuple[str, int] | None:
    """Where an address is: owners may announce anything that their clients understand."""
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        return (parts.hostname, parts.port) if parts.hostname and parts.port else None
    except ValueError:
        return None


def _try_port(address: str) -> str:
    place = _place(address)
    assert place is not None, address
    try:
        socket.create_connection(place, TIMEOUT_SECONDS).close()
    except OSError as error:
        return why_not(error, TIMEOUT_SECONDS)
    return ""


def _certificates(asked: Sequence[AskedManager]) -> Iterator[tuple[str, datetime]]:
    """When the certificates of managers expire. One that does not answer is told of already."""
    for each in asked:
        tls = Credentials.from_environment().to(each.url)
        parts = urlsplit(each.url)
        if tls is None or each.status is None or parts.hostname is None:
            continue
        place, shown = (parts.hostname, parts.port or 443), None
        with (
            suppress(OSError),  # it answered a moment ago, and has gone since
            socket.create_connection(place, TIMEOUT_SECONDS) as plain,
            tls.wrap_socket(plain, server_hostname=parts.hostname) as secured,
        ):
            shown = (secured.getpeercert() or {}).get("notAfter")
        if isinstance(shown, str):
            yield each.url, datetime.fromtimestamp(ssl.cert_time_to_seconds(shown), UTC)
