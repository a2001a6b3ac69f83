"""The checks of `tenure doctor`: each looks at what managers answered, and yields what it found.

To add one, write it and add it to CHECKS.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias

import msgspec

from tenure.cli.output import counted
from tenure.cli.status import AskedManager
from tenure.manager.answers import StatusAnswer
from tenure.protocol.lease.answers import OwnerSummary

APART_SECONDS = 2.0
"""Clocks that follow a time server are nearer than this, the way of the question included."""
LEAST_FREE_BYTES = 256 << 20
"""A manager can write for days into this, but other programs fill a disk faster."""
OLD_TOKEN = timedelta(days=365)
CERTIFICATE_SOON = timedelta(days=14)


class Finding(msgspec.Struct, frozen=True):
    """The outcome of one check."""

    check: str
    result: Literal["ok", "soon", "wrong"]
    """`soon` is what works now and will not for long."""
    what: str
    way_out: str = ""


class Port(msgspec.Struct, frozen=True):
    """An owner's address, and why nobody answers there; empty if somebody does."""

    pool: str
    owner: str
    address: str
    error: str


class Examined(msgspec.Struct, frozen=True, kw_only=True):
    """All that `tenure doctor` has seen."""

    managers: Sequence[AskedManager]
    pools: Sequence[tuple[str, Sequence[OwnerSummary]]] = ()
    ports: Sequence[Port] = ()
    certificates: Sequence[tuple[str, datetime]] = ()
    """The managers with TLS, and when their certificates expire."""
    now: datetime = msgspec.field(default_factory=lambda: datetime.now(UTC))

    @property
    def answered(self) -> list[StatusAnswer]:
        """What the managers that answer said."""
        return [each.status for each in self.managers if each.status]

    @property
    def leaders(self) -> list[StatusAnswer]:
        """The managers that lead a journal which no operator has declared over."""
        return [each for each in self.answered if each.proven and not each.is_over]


Check: TypeAlias = Callable[[Examined], Iterator[Finding]]


def examine(seen: Examined) -> list[Finding]:
    """What all checks find."""
    return [finding for check in CHECKS for finding in check(seen)]


def _answers(seen: Examined) -> Iterator[Finding]:
    silent = [each for each in seen.managers if each.status is None]
    for each in silent:
        way_out = "start it, or take it out of the list of managers"
        yield Finding("managers answer", "wrong", f"{each.url}: {each.error}", way_out)
    if not silent:
        yield Finding("managers answer", "ok", counted(len(seen.managers), "manager"))


def _leader(seen: Examined) -> Iterator[Finding]:
    leaders = seen.leaders
    if not leaders:
        way_out = "ask again in some seconds, and see that the managers reach their journal"
        yield Finding("one leads", "wrong", "no manager leads", way_out)
    elif len(leaders) == 1:
        yield Finding("one leads", "ok", leaders[0].url)


def _journals(seen: Examined) -> Iterator[Finding]:
    leaders = seen.leaders
    journals = {each.journal_id: each for each in leaders if each.journal_id}
    way_out = "decide which one goes on: tenure resolve --keep URL"
    if len(journals) > 1:
        who = "; ".join(f"{each.url} leads {journal}" for journal, each in journals.items())
        what = f"{len(journals)} journals have living leaders: {who}"
        yield Finding("one journal", "wrong", what, way_out)
    for each in leaders:
        for rival in each.rivals:
            where = f"the pool {rival.pool!r}" if rival.pool else "all pools"
            what = (
                f"{each.url} has stopped granting in {where}: {rival.manager} leads another "
                f"journal, {rival.journal}"
            )
            yield Finding("one journal", "wrong", what, way_out)
    if len(journals) == 1 and not any(each.rivals for each in leaders):
        yield Finding("one journal", "ok", next(iter(journals)))


def _realms(seen: Examined) -> Iterator[Finding]:
    realms = {each.realm for each in seen.leaders if each.realm}
    if len(realms) > 1:
        what = f"the managers are of several realms: {', '.join(sorted(realms))}"
        way_out = "name the managers of one realm only"
        yield Finding("one realm", "wrong", what, way_out)


def _journal_health(seen: Examined) -> Iterator[Finding]:
    for each in seen.answered:
        health = each.journal_health
        members = [f"{it.endpoint}: {it.error}" for it in health.members if it.error]
        for trouble in (health.error, *health.alarms, *members):
            if trouble:
                what = f"{each.url} and its journal {each.journal}: {trouble}"
                yield Finding("journal is well", "wrong", what, "look at the journal's own host")
        if health.free_bytes is not None and health.free_bytes < LEAST_FREE_BYTES:
            what = f"{each.url}: {health.free_bytes:,} bytes are free on the disk of its journal"
            way_out = "make room: a manager that cannot write stops leading"
            yield Finding("room on the disk", "soon", what, way_out)


def _versions(seen: Examined) -> Iterator[Finding]:
    versions = {each.version for each in seen.answered}
    if len(versions) > 1:
        what = "; ".join(f"{each.url} is {each.version}" for each in seen.answered)
        way_out = "finish the upgrade: restart the older ones as the newer version"
        yield Finding("one version", "soon", what, way_out)
    elif versions:
        yield Finding("one version", "ok", next(iter(versions)))


def _clocks(seen: Examined) -> Iterator[Finding]:
    told = [each for each in seen.managers if each.ahead_seconds is not None]
    apart = [each for each in told if abs(each.ahead_seconds or 0.0) > APART_SECONDS]
    for each in apart:
        ahead = each.ahead_seconds or 0.0
        way = "ahead of" if ahead > 0 else "behind"
        what = f"the clock of {each.url} is {abs(ahead):.1f} s {way} the one here"
        way_out = "let both hosts follow a time server; no lease depends on it, but logs do"
        yield Finding("clocks agree", "wrong", what, way_out)
    if told and not apart:
        yield Finding("clocks agree", "ok", f"within {APART_SECONDS:g} s")


def _tokens(seen: Examined) -> Iterator[Finding]:
    for each in seen.answered:
        if not each.oldest_token:
            continue
        made = datetime.fromisoformat(each.oldest_token)
        if seen.now - made > OLD_TOKEN:
            what = f"{each.url} takes a token that was made on {made:%Y-%m-%d}"
            way_out = (
                "make a new one, then take the old one out: tenure token new, tenure token remove"
            )
            yield Finding("tokens are young", "soon", what, way_out)


def _certificates(seen: Examined) -> Iterator[Finding]:
    for url, ends in seen.certificates:
        if ends - seen.now < CERTIFICATE_SOON:
            what = f"the certificate of {url} expires on {ends:%Y-%m-%d}"
            way_out = "replace its files; the manager reads them again by itself"
            yield Finding("certificates last", "soon", what, way_out)
        else:
            yield Finding("certificates last", "ok", f"{url}: until {ends:%Y-%m-%d}")


def _pools(seen: Examined) -> Iterator[Finding]:
    for pool, owners in seen.pools:
        for each in owners:
            if each.steering == "stuck":
                what = f"{each.name} of {pool!r} keeps what it has lost: a callback of it hangs"
                yield Finding("owners are well", "wrong", what, "look at its log, or restart it")
        if not owners:
            what = f"the pool {pool!r} has no owner, so nobody serves its keys"
            yield Finding("owners are well", "soon", what, "start one, or delete the pool")


def _ports(seen: Examined) -> Iterator[Finding]:
    for each in seen.ports:
        if each.error:
            what = f"{each.owner} of {each.pool!r} at {each.address}: {each.error}"
            way_out = "clients need this port: open it, or announce another address"
            yield Finding("ports are open", "wrong", what, way_out)
    if seen.ports and not any(each.error for each in seen.ports):
        yield Finding("ports are open", "ok", counted(len(seen.ports), "port"))


def _stores(seen: Examined) -> Iterator[Finding]:
    for each in seen.leaders:
        for cluster, troubles in each.store_troubles.items():
            for trouble in troubles:
                yield Finding("nodes of the store", "wrong", f"{cluster}: {trouble}")


def _troubles(seen: Examined) -> Iterator[Finding]:
    for each in seen.leaders:
        for pool, why in each.troubles.items():
            way_out = "see tenure plan, and the manager's log"
            yield Finding("pools are planned", "wrong", f"{pool}: {why}", way_out)


CHECKS: Iterable[Check] = (
    *(_answers, _leader, _journals, _realms, _journal_health, _versions, _clocks, _tokens),
    *(_certificates, _pools, _ports, _troubles, _stores),
)
