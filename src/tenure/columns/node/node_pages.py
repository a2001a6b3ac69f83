"""What a node shows at its own port: its requests, its disk, and how the other nodes seem to it.

A manager shows the whole ring, but knows nothing of requests: they never pass it. What is where,
`plain_pages` says.
"""

from collections.abc import Iterator, Mapping

import msgspec

from tenure.columns.node.request_timings import Timed
from tenure.observe.metrics import Histogram, MetricFamily, Sample, gauge, gauges
from tenure.observe.plain_pages import page_at, plain_page, plain_table
from tenure.protocol.topology.messages import NodeReport
from tenure.protocol.topology.records import NodeId


class DiskShown(msgspec.Struct, frozen=True, kw_only=True):
    """The disk of a node's directory, in bytes."""

    free: int
    total: int


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A node, as `/v1/status` shows it."""

    cluster: str
    url: str
    version: int
    """The version of the topology by which it acts; 0 before it was told one."""
    takes_part: bool
    """Whether the ring is formed, and this node is on it."""
    damage: str
    """What its disk has lost; empty if it is well."""
    under_way: int
    """Requests of clients that are not answered."""
    slow: int
    """How many were answered later than `--slow-after`."""
    copied: int
    to_copy: int
    """The bytes of what it gains by a change of the ring."""
    disk: DiskShown
    spaces: Mapping[str, Mapping[str, int]]
    """Entries, bytes, memory and files of each part of its storage."""
    names: Mapping[NodeId, str]
    """The names of the nodes of the ring."""
    report: NodeReport
    """Its upkeep, and what it makes of the others."""


class NodeShown(msgspec.Struct, frozen=True, kw_only=True):
    """A node with what only `/metrics` has."""

    status: NodeStatus
    requests: Mapping[Timed, Histogram]
    syncs: Histogram


def node_page(shown: NodeShown, path: str, accept: str) -> tuple[bytes, str] | None:
    """The content at `path`, and its type; None if there is no such page."""
    return page_at(path, accept, lambda: _html(shown), shown.status, lambda: node_families(shown))


def node_families(shown: NodeShown) -> Iterator[MetricFamily]:
    status = shown.status
    yield MetricFamily(
        "tenure_store_request_seconds",
        "How long requests of clients took at this node, by what became of them.",
        "histogram",
        tuple(Sample(taken, timed._asdict()) for timed, taken in sorted(shown.requests.items())),
    )
    yield gauge("tenure_store_requests", "Requests that are not answered.", status.under_way)
    yield _counter("tenure_store_slow_requests", "Answered later than --slow-after.", status.slow)
    yield MetricFamily(
        "tenure_store_sync_seconds",
        "How long the disk took until what was written would survive a power failure.",
        "histogram",
        (Sample(shown.syncs),),
    )
    yield gauge("tenure_store_topology", "The version of the topology.", status.version)
    yield gauge("tenure_store_takes_part", "1 if it is on the ring.", status.takes_part)
    yield gauge("tenure_store_damaged", "1 if its disk has lost something.", bool(status.damage))
    yield gauge("tenure_store_copied_bytes", "Bytes copied of what it gains.", status.copied)
    yield gauge("tenure_store_to_copy_bytes", "Bytes of what it gains.", status.to_copy)
    yield from _of_others(status)
    yield from _of_ranges(status.report)
    yield from _of_disk(status)


def _counter(name: str, help_: str, value: int) -> MetricFamily:
    return MetricFamily(name, help_, "counter", (Sample(value),))


def _of_others(status: NodeStatus) -> Iterator[MetricFamily]:
    report = status.report
    hints = [({"node": _name(status, each.node)}, each) for each in report.hints]
    seen = [({"node": _name(status, each.node)}, each) for each in report.seen]
    yield gauges(
        "tenure_store_hints", "Writes kept for a silent node.", ((of, it.count) for of, it in hints)
    )
    yield gauges(
        "tenure_store_hint_bytes", "The bytes of these.", ((of, it.bytes) for of, it in hints)
    )
    yield _counter(
        "tenure_store_hints_dropped", "Hints for which there was no room.", report.hints_dropped
    )
    yield gauges(
        "tenure_store_phi",
        "How suspect another node is: it is convicted at 5.",
        ((of, it.phi) for of, it in seen),
    )
    yield gauges(
        "tenure_store_convicts",
        "1 for a node that this one considers down.",
        ((of, it.is_convicted) for of, it in seen),
    )


def _of_ranges(report: NodeReport) -> Iterator[MetricFamily]:
    compared = [it.compared_seconds for it in report.tended if it.compared_seconds is not None]
    sealed = [it.sealed_seconds for it in report.tended if it.sealed_seconds is not None]
    yield _oldest(
        "tenure_store_oldest_comparison_seconds",
        "How long ago the range that has waited longest was compared with its replicas.",
        compared,
    )
    yield _oldest(
        "tenure_store_oldest_seal_seconds",
        "How long ago the range that has waited longest was sealed.",
        sealed,
    )
    yield gauge(
        "tenure_store_differing_rows",
        "Rows that the last comparisons of all ranges found to differ, and mended.",
        sum(it.differing for it in report.tended),
    )
    yield _counter(
        "tenure_store_scrubbed_entries",
        "Entries read to find damage, in this life.",
        report.scrubbed.entries,
    )


def _oldest(name: str, help_: str, ages: list[float]) -> MetricFamily:
    """Nothing where there is none yet: 0 would say that it was just now."""
    return gauges(name, help_, ((({}, max(ages)),) if ages else ()))


def _of_disk(status: NodeStatus) -> Iterator[MetricFamily]:
    yield gauge("tenure_store_disk_free_bytes", "What its disk has left.", status.disk.free)
    yield gauge("tenure_store_disk_bytes", "The size of its disk.", status.disk.total)
    for what, help_ in (
        ("entries", "Entries of each part of its storage, estimated."),
        ("bytes", "Bytes of its files."),
        ("memory", "Bytes gathered in memory, for its next file."),
        ("files", "Files that are not merged yet; at some twenty, writes are slowed down."),
    ):
        yield gauges(
            f"tenure_store_space_{what}",
            help_,
            (({"space": name}, figures[what]) for name, figures in sorted(status.spaces.items())),
        )


def _name(status: NodeStatus, node: NodeId) -> str:
    return status.names.get(node, f"{node:x}")


def _html(shown: NodeShown) -> str:
    status, report = shown.status, shown.status.report
    of_all = {
        "takes part in the ring": "yes" if status.takes_part else "no",
        "damage": status.damage or "none",
        "requests under way": status.under_way,
        "slow requests": status.slow,
        "bytes free on its disk": f"{status.disk.free:,} of {status.disk.total:,}",
        "bytes copied of what it gains": f"{status.copied:,} of {status.to_copy:,}",
        "rows that differed": sum(each.differing for each in report.tended),
        "hints dropped": report.hints_dropped,
    }
    hints = {each.node: each for each in report.hints}
    others = [
        (
            _name(status, each.node),
            "down" if each.is_convicted else "up",
            f"{each.phi:.1f}",
            hints[each.node].count if each.node in hints else 0,
        )
        for each in report.seen
    ]
    requests = [
        (*timed, sum(taken.counts), f"{1000 * taken.sum / sum(taken.counts):.1f}")
        for timed, taken in sorted(shown.requests.items())
    ]
    return plain_page(
        "tenure: node",
        f"A node of {status.cluster} at {status.url}",
        plain_table("The node", ("what", ""), of_all.items()),
        plain_table("Other nodes", ("node", "status", "φ", "hints kept for it"), others),
        plain_table("Requests", ("request", "level", "outcome", "count", "mean ms"), requests),
    )
