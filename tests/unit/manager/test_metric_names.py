"""Documents, alerts and dashboards ask for metrics that are shown, and documents name them all."""

import json
import re
from typing import get_args

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tenure import Lookup, MetricsCollector, Owner
from tenure.cache.server_pages import VolumeAnswer, server_page
from tenure.columns.node.node_pages import DiskShown, NodeShown, NodeStatus, node_families
from tenure.manager.metrics import NOTHING_YET
from tenure.observe.metrics import Histogram
from tenure.protocol.lease.messages import ToManager
from tenure.protocol.lease.owner.noted import OwnerKind
from tenure.protocol.lease.reports import VolumeReport
from tenure.protocol.replication.messages import FailedWhy
from tenure.protocol.topology.messages import NodeReport
from tests.repo.reading import ROOT
from tests.unit.manager.serving import serving
from tests.unit.manager.test_metrics import scraped

WRITTEN = ("deploy/alerts.yml", "deploy/dashboard.json", "docs/operating/metrics.md")
NODE = NodeStatus(
    cluster="mail",
    url="http://127.0.0.1:7500",
    version=0,
    takes_part=False,
    damage="",
    under_way=0,
    slow=0,
    copied=0,
    to_copy=0,
    disk=DiskShown(free=1, total=2),
    spaces={},
    names={},
    report=NodeReport(),
)
NAME = re.compile(r"\btenure_[a-z_]+")
SUFFIX = re.compile(r"_(total|bucket|count|sum)$")


@pytest.mark.asyncio
async def test_every_name_that_is_written_down_is_one_that_is_shown() -> None:
    async with serving() as manager:
        owner = Owner(manager.service.url, pool="rooms", address="http://a")
        lookup = Lookup(manager.service.url, pool="rooms")
        async with owner, lookup:
            await owner.ready()
            shown = {SUFFIX.sub("", name) for name in await scraped(manager)}
            shown |= {family.name for family in MetricsCollector(owner, lookup).collect()}
    idle = VolumeReport(readers=0, leases=0, unacknowledged=0, writes=0, loads=0)
    page = server_page(VolumeAnswer(url="", volume=idle, events={}), "/metrics", "")
    assert page is not None
    families = text_string_to_metric_families(page[0].decode())
    shown |= {SUFFIX.sub("", family.name) for family in families}
    shown |= {
        family.name
        for family in node_families(NodeShown(status=NODE, requests={}, syncs=Histogram()))
    }
    written = {
        (path, name)
        for path in WRITTEN
        for name in NAME.findall((ROOT / path).read_text("utf-8"))
        if SUFFIX.sub("", name) not in shown
    }
    assert written == set()
    documented = (ROOT / WRITTEN[-1]).read_text("utf-8")
    ours = {name for name in shown if name.startswith("tenure_")}
    assert {name for name in ours if name not in documented} == set()


NAMED = re.compile(r'(event|message|outcome)=~?"([^"]+)"')
CLIENT_EVENTS = {"ranges lost", *(each.phrase for each in OwnerKind)}


def test_every_label_that_is_asked_for_is_one_that_is_counted() -> None:
    known = {
        "event": NOTHING_YET.keys() | CLIENT_EVENTS,
        "message": {each.__name__ for each in get_args(ToManager)},
        "outcome": {"done", "not written", *get_args(FailedWhy)},
    }
    asked = [
        (label, name)
        for path in WRITTEN[:2]
        for label, names in NAMED.findall((ROOT / path).read_text("utf-8").replace('\\"', '"'))
        for name in names.split("|")
    ]
    assert known.keys() == {label for label, _ in asked}
    assert [(label, name) for label, name in asked if name not in known[label]] == []


def test_the_dashboard_is_what_grafana_reads() -> None:
    dashboard = json.loads((ROOT / "deploy/dashboard.json").read_text("utf-8"))
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) > 10
    assert all(panel["targets"][0]["expr"] for panel in panels)
