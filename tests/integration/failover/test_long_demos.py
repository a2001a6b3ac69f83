"""Demos whose trouble takes its time: leaders die, owners are restarted, a crowd comes.

Each keeps eight processes or more busy for up to half a minute, until terms have run out or loads
have been evened out. They are here because the tests beside them take their time as well. Terms are
those of the default preset: nothing may be lost here, and a stall of a busy machine is longer than
those of the test preset.
"""

import json
import signal
from pathlib import Path

import pytest

from tests.integration.demos import lines, run, running, wait_for_line
from tests.patience import DEADLINE_SECONDS


@pytest.mark.parametrize("journal", ["sqlite", "etcd"])
def test_leaders_are_killed_and_nobody_notices(tmp_path: Path, journal: str) -> None:
    sizes = ("--managers", "3", "--owners", "2", "--frontends", "1", "--seconds", "9")
    done = run(
        tmp_path, *sizes, "--journal", journal, "--kill-leader", "--preset", "default", "--json"
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["leader_kills"] >= 1, done.stderr
    assert 0 < summary["takeover_seconds"] <= summary["slowest_takeover_seconds"]
    nothing = ("failed", "double_owner", "leases_lost_to_failover", "losses_signalled")
    assert {name: summary[name] for name in nothing} == dict.fromkeys(nothing, 0), done.stderr
    assert "leases and requests go on" in done.stderr
    assert ("an etcd of 3 members" in done.stderr) == (journal == "etcd")
    assert list(tmp_path.iterdir()) == []


def test_all_owners_are_restarted_and_no_client_notices(tmp_path: Path) -> None:
    sizes = ("--owners", "3", "--frontends", "2")
    done = run(tmp_path, "--rolling-restart", *sizes, "--preset", "default", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    nothing = ("failed", "double_owner", "keys_lost", "losses_signalled", "keys_republished")
    assert {name: summary[name] for name in nothing} == dict.fromkeys(nothing, 0), done.stderr
    assert summary["drains"] == summary["owners"] == 3
    assert 0 < summary["drain_seconds"] <= summary["slowest_drain_seconds"]
    assert summary["moves_per_key"] >= 1, "what is restarted has handed over what it had"
    assert summary["leases_lost_to_failover"] == 0
    assert "all 3 owners have been restarted" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_crowd_at_one_owner_is_spread_over_all(tmp_path: Path) -> None:
    sizes = ("--owners", "3", "--seconds", "180")
    with running(tmp_path, "--hot-keys", *sizes, "--preset", "default", "--json") as demo:
        wait_for_line(demo, "even again after")
        demo.send_signal(signal.SIGINT)
        told = "".join(lines(demo))
        assert demo.wait(DEADLINE_SECONDS) == 0, told
    summary = json.loads(told[told.index("{") :])
    nothing = ("failed", "double_owner", "keys_lost", "losses_signalled", "owner_kills")
    assert {name: summary[name] for name in nothing} == dict.fromkeys(nothing, 0), told
    assert summary["crowds"] >= 1
    assert summary["uneven"] > 1.5, "half of all requests were for one of three owners"
    assert 0 < summary["even_seconds"] <= summary["slowest_even_seconds"]
    assert list(tmp_path.iterdir()) == []


def test_a_store_goes_on_while_nodes_are_killed_added_and_moved(tmp_path: Path) -> None:
    with running(tmp_path, "columns", "--seconds", "10", "--json") as demo:
        told = "".join(lines(demo))
        assert demo.wait(DEADLINE_SECONDS) == 0, told
    summary = json.loads(told[told.index("{") :])
    nothing = {"failed": 0, "stale": 0, "lost": 0, "trouble": ""}
    assert {name: summary[name] for name in nothing} == nothing, told
    assert (summary["killed"], summary["added"]) == ("node-1", "node-5")
    assert summary["moves"], told
    assert summary["after"] < summary["before"], told
    assert list(tmp_path.iterdir()) == []
