"""Whatever reads from a peer, or keeps something for one, has a bound.

Three habits have none: to read all of an answer, to open a WebSocket without the size of its
messages, and a queue of any length. Each place where one stands is named here, with what bounds it.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import tenure

ROOT = Path(tenure.__file__).parent
OF_SERVERS = "aiohttp refuses a body that is longer than the application allows"
OURS = "it comes from this very process, or from its child"
EXCUSED = {
    "cli/demo/operations.py": "of the demo's own processes",
    "cli/demo/owner.py": OF_SERVERS,
    "cli/demo/leash.py": "of the demo's own processes",
    "client/hand_off/line.py": "the machine says one thing, and waits for its answer",
    "fencing/commit_groups.py": OURS,
    "journals/etcd/gateway.py": "whoever answers for the journal can do everything",
    "manager/api.py": OF_SERVERS,
    "manager/cluster_api.py": OF_SERVERS,
    "manager/entity_files.py": OF_SERVERS,
    "manager/planning_thread.py": OURS,
    "manager/server.py": OF_SERVERS,
    "manager/sign_in_api.py": OF_SERVERS,
    "manager/steering_api.py": OF_SERVERS,
    "sim/app/doors.py": "of simulated processes, which are ours",
    "services/feeds/feed_owners.py": OF_SERVERS,
    "services/feeds/service.py": OF_SERVERS,
    "services/serving.py": OF_SERVERS,
    "testing/asgi_channel.py": OURS,
    "transport/handshakes.py": "no message is read by it: it only looks at a handshake",
}
NEEDS = {"ws_connect": "max_msg_size", "WebSocketResponse": "max_msg_size"}
READS_ALL = ("read", "text", "json")
QUEUES = ("Queue", "SimpleQueue", "LifoQueue", "PriorityQueue")
NOT_OF_PEERS = ("backend", "_epochs", "socket")
"""What is read by a method of that name, and is no answer of a peer."""


def unbounded(source: str) -> Iterator[str]:
    """The calls that read or keep any amount."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Await) and isinstance(node.value, ast.Call):
            yield from _reads_all(node.value)
        if not isinstance(node, ast.Call):
            continue
        name = _name(node.func)
        if name in QUEUES and not node.args and not node.keywords:
            yield f"{node.lineno}: {name}()"
        needs = NEEDS.get(name)
        if needs and needs not in {each.arg for each in node.keywords}:
            yield f"{node.lineno}: {name} without {needs}"
        if name == "read" and not node.args and _name(_of(node.func)) == "response":
            yield f"{node.lineno}: response.read()"


def _reads_all(call: ast.Call) -> Iterator[str]:
    of = _name(_of(call.func))
    if _name(call.func) in READS_ALL and not call.args and of not in (*NOT_OF_PEERS, "response"):
        yield f"{call.lineno}: await {of}.{_name(call.func)}()"


def _of(func: ast.expr) -> ast.expr | None:
    return func.value if isinstance(func, ast.Attribute) else None


def _name(node: ast.expr | None) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def sources() -> Iterator[tuple[str, str]]:
    for path in sorted(ROOT.rglob("*.py")):
        yield str(path.relative_to(ROOT)), path.read_text()


def test_nothing_is_read_or_kept_without_a_bound() -> None:
    found = {
        f"{path}:{each}"
        for path, source in sources()
        if path not in EXCUSED
        for each in unbounded(source)
    }
    assert found == set()


def test_what_is_excused_is_there() -> None:
    there = {path for path, source in sources() if any(unbounded(source))}
    assert EXCUSED.keys() <= there


@pytest.mark.parametrize(
    "bad",
    [
        "async def f():\n    return await response.read()",
        "async def f():\n    return await said.text()",
        "async def f():\n    return await (await request).json()",
        "def f():\n    return response.read()",
        "waiting = asyncio.Queue()",
        "async def f():\n    return await session.ws_connect(url, heartbeat=5)",
        "socket = web.WebSocketResponse()",
    ],
)
def test_the_walk_finds_each_habit(bad: str) -> None:
    assert list(unbounded(bad))


@pytest.mark.parametrize(
    "good",
    [
        "async def f():\n    return await read_body(response, 100)",
        "waiting = asyncio.Queue(5)",
        "async def f():\n    return await session.ws_connect(url, max_msg_size=5)",
        "def f():\n    return response.read(100)",
    ],
)
def test_the_walk_leaves_alone_what_is_bounded(good: str) -> None:
    assert not list(unbounded(good))
