"""The commands about clusters, against a manager in this process."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tenure.cli.app import run
from tenure.cli.ordering import budget_of
from tenure.errors import ConfigurationError
from tenure.protocol.topology.messages import (
    HintsFor,
    NodeReport,
    NodeSeen,
    RangeTended,
    RangeWeight,
    TopologyTold,
)
from tests.unit.manager.nodes import SocketNode, connected
from tests.unit.manager.serving import Serving, serving

pytestmark = pytest.mark.asyncio
Capture = pytest.CaptureFixture[str]


async def to(manager: Serving, *arguments: str, code: int = 0) -> None:
    arguments = ("columns", *arguments, "--manager", manager.service.url)
    assert await asyncio.to_thread(run, arguments) == code


@asynccontextmanager
async def with_nodes(count: int) -> AsyncIterator[tuple[Serving, list[SocketNode]]]:
    """A manager, a cluster with two replicas, and nodes of it."""
    async with serving() as manager:
        await to(manager, "create", "chat", "--placement", "2")
        url, session = manager.service.url, manager.session
        nodes = [await connected(url, session, number) for number in range(1, count + 1)]
        for node in (*nodes, *nodes):
            await node.ask()
        yield manager, nodes


async def test_a_node_is_added_with_a_preview(capsys: Capture) -> None:
    async with with_nodes(3) as (manager, nodes):
        for node in nodes:
            node.weights = (RangeWeight(start=b"", end=None, bytes=64_000_000),)
            await node.ask()
        await to(manager, "add", "chat", "n3", "--token", "0x28", "--dry-run")
        await to(manager, "add", "chat", "n3", "--token", "0x28")
        said = capsys.readouterr().out.splitlines()
        assert said[0] == "cluster chat created"
        assert said[1].startswith(
            "dry run, nothing was changed. Without --dry-run: n3 is being added"
        )
        assert said[2].startswith("  n3 copies 2 ranges, ")
        assert said[2].endswith(" MB")
        await to(manager, "remove", "chat", "n1", code=2)
        assert "one change at a time: n3 is being added" in capsys.readouterr().err
        for _ in range(4):
            for node in nodes:
                await node.ask()
        await to(manager, "ring", "chat")
        table = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
        assert [(line[0], line[1], line[3]) for line in table[1:]] == [
            ("n1", "member", "0x10"),
            ("n2", "member", "' '"),
            ("n3", "member", "'('"),
        ]
        await to(manager, "ring", "chat", "--ranges")
        assert len(capsys.readouterr().out.splitlines()) == 5
        await to(manager, "clusters")
        assert capsys.readouterr().out.splitlines()[1] == "chat\t2\t3\t0\t0\tsettled"


async def test_moves_are_proposed_and_one_can_be_begun_and_taken_back(
    capsys: Capture,
) -> None:
    async with with_nodes(4) as (manager, nodes):
        await to(manager, "moves", "chat")
        assert "nodes have not said what they carry" in capsys.readouterr().out
        for node in nodes:
            node.weights = (RangeWeight(start=b"\x80", end=b"\xa0", bytes=10**9),)
            await node.ask()
        for name in ("n3", "n4"):
            await to(manager, "add", "chat", name)
            for _ in range(4):
                for node in nodes:
                    await node.ask()
        capsys.readouterr()
        await to(manager, "moves", "chat", "--json")
        found = json.loads(capsys.readouterr().out)
        assert found["known"] is True
        await to(manager, "move", "chat", "n1", "--token", "0x94")
        await to(manager, "take-back", "chat")
        await to(manager, "balance", "chat", "5000")
        said = capsys.readouterr().out.splitlines()
        assert said[0].startswith("n1 is being moved to 0x94 since version")
        assert said[-2].startswith("taken back: n1 is being moved")
        assert said[-1] == "at most 5000 bytes a day are moved to even out the load"
        for text, done in (
            ("auto", "at most 100000000000 bytes a day are moved to even out the load"),
            ("off", "nothing is moved to even out the load"),
        ):
            await to(manager, "create", "chat", "--placement", "2", "--balance", text)
            assert capsys.readouterr().out.splitlines()[-1] == done


@pytest.mark.parametrize("text", ["", "on", "-1", "1e9", "\u0661", "1" * 19])
async def test_a_balance_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="auto, off or a number"):
        budget_of(text)


async def test_what_nodes_do_by_themselves_is_shown(capsys: Capture) -> None:
    async with with_nodes(2) as (manager, nodes):
        for command in ("repair", "seals", "hints"):
            await to(manager, command, "chat")
        assert "nobody yet" in capsys.readouterr().out
        topology = nodes[0].topology
        assert topology is not None
        ranges = [each.range for each in topology.each()]
        first, second = (node.node.id for node in nodes)
        nodes[0].report = NodeReport(
            tended=tuple(
                RangeTended(
                    start=each.start,
                    end=each.end,
                    compared_seconds=40.0,
                    differing=7,
                    bytes=2_000,
                    held_back_by=(second,),
                )
                for each in ranges
            ),
            hints=(HintsFor(node=second, count=3, bytes=90),),
            hints_dropped=1,
            seen=(NodeSeen(node=second, phi=6.5, is_convicted=True),),
        )
        before = await nodes[0].ask()
        await to(manager, "repair", "chat")
        await to(manager, "seals", "chat")
        await to(manager, "hints", "chat")
        lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
        assert ["n1", "40 s ago", "7", "2.0 kB"] in [line[2:] for line in lines]
        assert ["n1", "not yet", "n2"] in [line[2:] for line in lines]
        assert ["n2", "n1", "3", "90 B"] in lines
        await to(manager, "hints", "chat", "--json")
        told = json.loads(capsys.readouterr().out)
        assert told["seen"] == [
            {"by": "n1", "node": "n2", "phi": 6.5, "is_convicted": True, "clock_ahead_us": 0}
        ]
        assert told["ranges"][0]["held_back_by"] == ["n2"]
        await to(manager, "repair", "chat", "--now", "--dry-run")
        await to(manager, "repair", "chat", "--now")
        assert "nodes compare what they replicate" in capsys.readouterr().out
        after = await nodes[0].ask()
        assert isinstance(before, TopologyTold)
        assert isinstance(after, TopologyTold)
        assert after.compare == before.compare + 1
        assert first != second


async def test_what_is_wrong_is_said_before_anybody_is_asked(capsys: Capture) -> None:
    for words, said in (
        (("create", "chat", "--placement", "lots"), "'lots' is not a placement"),
        (("move", "chat", "n1", "--token", "0xzz"), "is not in hexadecimal"),
        (("ring", ""), "cannot be a cluster's name"),
    ):
        assert run(("columns", *words, "--manager", "http://127.0.0.1:1")) == 2
        assert said in capsys.readouterr().err


async def test_a_cluster_is_forgotten_when_its_nodes_are_gone(
    capsys: Capture,
) -> None:
    async with with_nodes(2) as (manager, nodes):
        await to(manager, "forget", "chat", code=2)
        assert "nodes of 'chat' are running" in capsys.readouterr().err
        for node in nodes:
            await node.socket.close()
        await to(manager, "forget", "chat", "--dry-run")
        await to(manager, "forget", "chat")
        await to(manager, "ring", "chat", code=2)
        streams = capsys.readouterr()
        assert streams.out.splitlines() == [
            "cluster chat can be forgotten",
            "cluster chat is forgotten",
        ]
        assert "there is no cluster 'chat'" in streams.err
