"""`tenure columns node`: run a node of the store in this process, until a signal ends it."""

import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tenure.base.hosts import check_trusted, is_loopback
from tenure.cli.asking import ManagerUrls
from tenure.cli.long_run import BRIEF, ReportOptions, run_long, told_to_end, until_one_ends
from tenure.cli.waiting import entered
from tenure.client.managers import VARIABLE, manager_urls
from tenure.columns.node.node_lives import NodeLives
from tenure.columns.node.node_service import NodeSettings
from tenure.errors import ConfigurationError
from tenure.transport.credentials import Credentials
from tenure.transport.datagram import host_and_port

Flag = Annotated[bool, Parameter(negative="")]

RATES = (0.001, 100_000)
REPAIR_SECONDS = (1.0, 86_400.0)
SLOW_MS = (1.0, 3_600_000.0)


@Parameter(name="*")
@dataclass(frozen=True)
class NodeOptions:
    """The options of `tenure columns node`."""

    cluster: str
    "The name of the cluster, as `tenure columns create` made it."
    data: Path
    "The node's directory, created if it is missing. An empty one is a new node."
    secret: Path
    "A file with the cluster's secret, the same for all nodes; make it with openssl rand -hex 32."
    manager: ManagerUrls = None
    seeds: str = ""
    "Addresses of some nodes, to learn of the others: HOST:PORT,HOST:PORT."
    seeds_file: Path | None = None
    "A file with one such address on each line."
    host: str = "127.0.0.1"
    "The address to listen on."
    port: int = 7500
    "The port to listen on, for requests (TCP) and for other nodes (UDP); 0 picks a free one."
    advertise: str = ""
    "The host under which others reach this node; by default that of --host."
    name: str = ""
    "The node's name; by default its host and port."
    rack: str = "rack"
    "The node's rack."
    datacentre: str = "datacentre"
    "The node's data centre."
    tokens: Path | None = None
    "The file of tokens: clients must present one with the role store, node or admin."
    copy_rate: float = 100.0
    "How many megabytes a second the node copies at most, when it gains a part of the ring."
    repair_rate: float = 16.0
    "How many megabytes a second comparing replicas takes at most."
    scrub_rate: float = 1.0
    "How many megabytes a second the node reads of its own files, to find damage."
    repair_every: float = 60.0
    "Seconds between two comparisons of replicas; with each the node also weighs its load."
    slow_after: float = 1000.0
    "Milliseconds after which a request is logged as slow, with a hash of its row's key."
    insecure: Flag = False
    "Listen on an address that other machines can reach, and trust everybody there."


def node(
    *,
    options: NodeOptions,
    report: ReportOptions = BRIEF,
) -> None:
    """Run a node of a cluster, through which clients reach the whole store."""
    report.log()
    credentials = Credentials.from_environment()
    settings = settings_of(options, credentials)
    run_long(lambda: _run(NodeLives(settings, credentials), settings.cluster, report))


def settings_of(options: NodeOptions, credentials: Credentials) -> NodeSettings:
    """Return the settings that the options stand for. Raises ConfigurationError."""
    is_guarded = credentials.listens_with_tls and (credentials.mutual or options.tokens is not None)
    if not (is_loopback(options.host) or is_guarded):
        insecure = (
            f"{options.host} can be reached from other machines, and everybody there could "
            "read and write everything: give it certificates and demand them of others "
            "(TENURE_CERT, TENURE_KEY, TENURE_CA, TENURE_MUTUAL_TLS=1), or a certificate and a "
            "file of tokens (--tokens)"
        )
        check_trusted(insecure, is_trusted=options.insecure)
        logging.getLogger("tenure.columns").warning("insecure: %s", insecure)
    if options.host in ("0.0.0.0", "::") and not options.advertise:  # noqa: S104 - it is refused
        raise ConfigurationError(
            f"{options.host} stands for every address of this machine, and others need one that "
            "they can reach: name it with --advertise HOST"
        )
    managers: tuple[str, ...] = ()
    if options.manager:
        managers = manager_urls(",".join(options.manager))
    elif os.environ.get(VARIABLE, "").strip():
        managers = manager_urls(None)
    return NodeSettings(
        cluster=options.cluster,
        data=options.data.expanduser(),
        secret=options.secret.expanduser(),
        tokens=None if options.tokens is None else options.tokens.expanduser(),
        managers=managers,
        seeds=seeds_of(options.seeds, options.seeds_file),
        host=options.host,
        port=options.port,
        advertise=options.advertise,
        name=options.name,
        rack=options.rack,
        datacentre=options.datacentre,
        copy_bytes_a_second=_bytes_of("--copy-rate", options.copy_rate),
        repair_bytes_a_second=_bytes_of("--repair-rate", options.repair_rate),
        scrub_bytes_a_second=_bytes_of("--scrub-rate", options.scrub_rate),
        repair_seconds=_within("--repair-every", options.repair_every, REPAIR_SECONDS, "seconds"),
        slow_seconds=_within("--slow-after", options.slow_after, SLOW_MS, "milliseconds") / 1000,
    )


def _bytes_of(option: str, megabytes: float) -> int:
    return round(1_000_000 * _within(option, megabytes, RATES, "megabytes a second"))


def _within(option: str, given: float, bounds: tuple[float, float], unit: str) -> float:
    lowest, highest = bounds
    if not lowest <= given <= highest:
        raise ConfigurationError(f"{option} {given}: it is {lowest:g} to {highest:g} {unit}")
    return given


def seeds_of(listed: str, file: Path | None) -> tuple[str, ...]:
    """The addresses in an argument and in a file. Raises ConfigurationError."""
    lines = listed.split(",")
    if file is not None:
        try:
            text = file.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"the seeds in {file} cannot be read: {error}") from error
        lines += [line.partition("#")[0] for line in text.splitlines()]
    seeds = dict.fromkeys(line.strip() for line in lines if line.strip())
    for seed in seeds:
        host_and_port(seed)
    return tuple(seeds)


async def _run(node: NodeLives, cluster: str, report: ReportOptions) -> None:
    told = told_to_end()
    async with entered(node, "starting the node", "ending the node"):
        text = f"a node of {cluster!r} listens at {node.url}"
        report.tell("listening", text, url=node.url, pid=os.getpid())
        await until_one_ends(told.wait(), node.wait())
    report.tell("stopped", "stopped")
