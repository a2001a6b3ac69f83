"""Tests turn clocks or wait for events. Those that sleep are listed here, each with its reason.

What tells nobody when it changes is looked at by `until` of tests/patience.py, which is the only
one that may sleep for that. `sleep(0)` is no sleep: it lets what is ready run. A name or a product
is one, because nobody knows that it is nothing.
"""

import ast
from collections import Counter
from collections.abc import Iterator

from tests.repo.reading import ROOT, Module, report, sample, sources

SIMULATED = "its time is simulated, and costs nothing"
FOR_EVER = "it is ended from outside, and must be alive until then"
WHILE = "it goes on until something else has happened, and lets that run"
NEVER_SOONER = "what must not happen is seen only by waiting for longer than it would take"
PLAYS = "it plays a program, or a load, that takes some time"
RACES = "whichever comes first is right: the pause makes one order likely, and proves nothing"

SLEEPS: dict[str, tuple[int, str]] = {
    "tests/contracts/test_datagrams.py": (1, WHILE),
    "tests/examples/test_caching.py": (1, WHILE),
    "tests/integration/cassandra/server.py": (1, "a server that starts may also end"),
    "tests/integration/cassandra/test_faults.py": (1, "it counts the turns that the loop has"),
    "tests/integration/etcd/proxy.py": (1, "the delay is the fault"),
    "tests/integration/etcd/test_log.py": (1, WHILE),
    "tests/integration/failover/test_etcd_faults.py": (1, "the length of the outage is the fault"),
    "tests/integration/failover/test_fenced_room.py": (2, PLAYS),
    "tests/integration/failover/test_hostile_to_nodes.py": (1, PLAYS),
    "tests/integration/failover/test_processes.py": (1, "the length of the stop is the fault"),
    "tests/integration/failover/test_two_masters.py": (1, WHILE),
    "tests/integration/failover/traffic.py": (2, PLAYS),
    "tests/integration/member/aiohttp_shop.py": (3, PLAYS),
    "tests/integration/member/shop.py": (3, PLAYS),
    "tests/integration/neighbour.py": (1, FOR_EVER),
    "tests/integration/storyteller.py": (1, FOR_EVER),
    "tests/integration/test_chat.py": (1, WHILE),
    "tests/integration/test_run.py": (1, WHILE),
    "tests/patience.py": (2, "for what tells nobody"),
    "tests/unit/benchmarks/test_service_loads.py": (1, PLAYS),
    "tests/unit/cache/test_bad_input.py": (1, FOR_EVER),
    "tests/unit/cache/test_blocking.py": (1, PLAYS),
    "tests/unit/cache/test_over_websocket.py": (1, WHILE),
    "tests/unit/cache/test_owners_volume.py": (1, FOR_EVER),
    "tests/unit/cli/test_restore.py": (1, WHILE),
    "tests/unit/cli/test_serve.py": (1, WHILE),
    "tests/unit/client/test_callbacks.py": (1, FOR_EVER),
    "tests/unit/client/test_finishing.py": (2, FOR_EVER),
    "tests/unit/client/test_owner.py": (1, "the engine waits in its own loop, by real time"),
    "tests/unit/client/test_shell.py": (1, NEVER_SOONER),
    "tests/unit/columns/node/test_bad_input.py": (2, NEVER_SOONER),
    "tests/unit/columns/node/test_damage.py": (1, NEVER_SOONER),
    "tests/unit/columns/test_deleting.py": (
        1,
        "the sweep has a thread of its own",
    ),
    "tests/unit/columns/test_steps.py": (1, WHILE),
    "tests/unit/entities/stage.py": (1, "the store's thread has a time of its own"),
    "tests/unit/entities/test_blocking.py": (1, PLAYS),
    "tests/unit/entities/test_odd_errors.py": (1, FOR_EVER),
    "tests/unit/member/test_aiohttp_relay.py": (2, RACES),
    "tests/unit/member/test_forwarding.py": (2, PLAYS),
    "tests/unit/runtime/test_task_limits.py": (2, NEVER_SOONER),
    "tests/unit/services/test_outward.py": (1, PLAYS),
    "tests/unit/services/test_queues.py": (1, RACES),
    "tests/unit/services/test_serving.py": (1, RACES),
    "tests/unit/sim/app/test_world.py": (2, SIMULATED),
    "tests/unit/sim/kernel/test_loop.py": (13, SIMULATED),
    "tests/unit/testing/rooms/answer_before.py": (1, SIMULATED),
    "tests/unit/testing/rooms/check_before.py": (2, SIMULATED),
    "tests/unit/testing/test_simulated.py": (5, SIMULATED),
    "tests/unit/transport/test_every_listener.py": (1, WHILE),
    "tests/versions/store_node.py": (1, "another release runs it, which finds no module of tests"),
}
"""How often a file sleeps at most, and why it may."""


def sleeps(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree()):
        match node:
            case ast.Call(args=[ast.Constant(value=0), *_]):
                pass
            case ast.Call(func=ast.Attribute(attr="sleep") | ast.Name(id="sleep"), args=[_, *_]):
                yield f"{module.path}:{node.lineno} {ast.unparse(node)}"
            case _:
                pass


def modules_of_tests() -> Iterator[Module]:
    for path in sources():
        if path.parts[0] == "tests":
            yield Module(str(path), str(path), (ROOT / path).read_text("utf-8"), is_package=False)


def strange(found: list[str], listed: dict[str, int]) -> list[str]:
    """Return the sleeps of all files that have more of them than are listed."""
    counted = Counter(line.partition(":")[0] for line in found)
    return [line for line in found if counted[it := line.partition(":")[0]] > listed.get(it, 0)]


def test_who_sleeps_is_listed_with_a_reason() -> None:
    found = [line for module in modules_of_tests() for line in sleeps(module)]
    assert not (them := strange(found, {path: n for path, (n, _) in SLEEPS.items()})), report(them)


def test_a_sleep_is_found() -> None:
    text = "time.sleep(0.1)\nawait asyncio.sleep(0)\nawait sleep(pause)\nclock.sleep()\n"
    found = list(sleeps(sample("a", text)))
    assert found == ["src/a.py:1 time.sleep(0.1)", "src/a.py:3 sleep(pause)"]
    assert strange(found, {"src/a.py": 2}) == []
    assert strange(found, {"src/a.py": 1}) == found
    assert strange(found, {"src/b.py": 2}) == found
