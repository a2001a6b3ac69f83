"""Layers: a module imports from the layers below its own, never from beside or above.

So do the rooms inside `protocol/`. The lab is above all of them: nothing here imports it.

Read from the import statements, so an import for type checkers only counts like any other: a layer
that must know another's types knows that layer.
"""

import pytest

from tests.repo.reading import Import, Module, imports, modules, report, sample

# The layers from the bottom up. Those in one row do not know each other.
ROWS = (
    ("base",),
    ("protocol",),
    ("wire", "runtime", "observe", "policies", "bounded_child"),
    ("transport", "journals"),
    ("manager", "client"),
    ("routing", "fencing", "cache", "columns"),
    ("stores",),
    ("owned_state", "member"),
    ("entities",),
    ("services", "gateway"),
    ("dashboard",),
    ("cli",),
)
ROW_OF = {layer: row for row, layers in enumerate(ROWS) for layer in layers}

# The rooms of `protocol/`, from the bottom up too: a room sees those in lower rows, and not those
# beside it. `lease` is the vocabulary that all rooms of leases share; it stands above `topology`,
# because one journal holds the records of both. What one replica decides of a row knows of no other
# node: `replication.row` sees nothing of the rest of its room. The server and the client of
# volumes share messages and limits, and do not know each other.
ROOMS = (
    ("log", "gossip", "entity"),
    ("topology",),
    ("lease", "replication.row", "volume"),
    ("balance",),
    (
        "lease.leader",
        "lease.owner",
        "lease.lookup",
        "replication",
        "volume.server",
        "volume.client",
    ),
)
ROOM_ROW = {room: row for row, rooms in enumerate(ROOMS) for room in rooms}

# Modules outside the rows. The face is `tenure/__init__.py`; the rest are what they say.
FACE, ERRORS = "face", "errors"
FREE = ("sim", "testing")

# A layer that does not simply see all below it. Errors are everybody's, so they need nobody.
ONLY = {
    ERRORS: {ERRORS},
    FACE: {
        FACE,
        ERRORS,
        "base",
        "transport",  # what a process shows and trusts
        "observe",  # its log
        "client",
        "owned_state",
        "routing",
        "fencing",
        "cache",
        "columns",
        "member",
        "entities",
    },
    "bounded_child": {"bounded_child"},  # knows nothing of tenure
    # Built with what users have too, but for processes that read what strangers wrote.
    "services": {"services", FACE, ERRORS, "bounded_child"},
}

# Layers that know no leases, because other protocols use them too.
NO_LEASES = ("journals",)
LEASES = ("tenure.protocol.lease", "tenure.wire.lease")

# The simulator and the test kit are for tests; this command brings them to the command line.
COMMANDS = ("tenure.cli.simulation",)


def layer_of(name: str) -> str:
    parts = name.split(".")
    if len(parts) == 1:
        return FACE
    return "cli" if parts[1] == "__main__" else parts[1]


def room_of(name: str) -> str | None:
    """Return the room of `protocol/` that a module is in; None if it is elsewhere."""
    parts = name.split(".")
    if parts[1:2] != ["protocol"] or len(parts) == 2:
        return None
    inner = ".".join(parts[2:4])
    return inner if inner in ROOM_ROW else parts[2]


def wrong_room(importer: str, target: str) -> str | None:
    """Say what is wrong with an import from one room of `protocol/` to another."""
    here, there = room_of(importer), room_of(target)
    if here is None or there is None or here == there:
        return None
    for room in (here, there):
        if room not in ROOM_ROW:
            return f"{room!r} is no room of protocol/; those are in tests/repo/test_layers.py"
    return None if ROOM_ROW[there] < ROOM_ROW[here] else f"{here} may not import {there}"


def target_of(found: Import, known: set[str]) -> str:
    """The module that the import reaches: `from tenure import errors` reaches the errors."""
    whole = f"{found.module}.{found.name}"
    return whole if whole in known else found.module


def allowed(importer: Module, layer: str, target: str) -> bool:
    if layer in FREE or layer == target:
        return True
    if target in FREE:
        return importer.name in COMMANDS
    if layer in ONLY:
        return target in ONLY[layer]
    if target == ERRORS:
        return True
    if target == FACE:  # imported from below, it would be a circle
        return ROW_OF[layer] > ROW_OF["owned_state"]
    return ROW_OF[target] < ROW_OF[layer]


def complaints(module: Module, known: set[str]) -> list[str]:
    layer = layer_of(module.name)
    if layer not in ROW_OF and layer not in (FACE, ERRORS, *FREE):
        return [f"{module.path}:1 {layer!r} is no layer; those are in tests/repo/test_layers.py"]
    found = []
    for each in imports(module):
        top = each.module.split(".")[0]
        if top == "lab":
            found.append(f"{module.path}:{each.line} the product may not import the lab")
        if top != "tenure":
            continue
        target = target_of(each, known)
        if layer_of(target) not in ROW_OF and layer_of(target) not in (FACE, ERRORS, *FREE):
            found.append(f"{module.path}:{each.line} imports {target}, which is in no layer")
        elif not allowed(module, layer, layer_of(target)):
            found.append(f"{module.path}:{each.line} {layer} may not import {target}")
        elif layer in NO_LEASES and target.startswith(LEASES):
            found.append(f"{module.path}:{each.line} {layer} may not know leases: {target}")
        elif why := wrong_room(module.name, target):
            found.append(f"{module.path}:{each.line} {why}")
    return found


def test_every_import_goes_down() -> None:
    known = {module.name for module in modules()}
    found = [line for module in modules() for line in complaints(module, known)]
    assert found == [], report(found)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tenure.base.keys", "from tenure.protocol.lease import table"),
        ("tenure.protocol.lease.table", "import tenure.wire.lease"),
        ("tenure.protocol.lease.table", "def f():\n    from tenure.runtime import driver"),
        ("tenure.protocol.lease.table", "from ...wire import lease"),
        ("tenure.wire.lease", "from tenure.observe import events"),
        ("tenure.manager.server", "from tenure.client import owner"),
        ("tenure.journals.memory", "from tenure.protocol.lease import records"),
        ("tenure.journals.memory", "from tenure.wire.lease_records import LEASE_RECORDS"),
        ("tenure.client.owner", "from tenure import Owner"),
        ("tenure.services.queues", "from tenure.protocol.lease import table"),
        ("tenure.client.owner", "from tenure.testing import cluster"),
        ("tenure.cli.manager", "from tenure.sim import world"),
        ("tenure.cli.simulation", "from lab.worlds.run import Outcome"),
        ("tenure.testing.simulation", "import lab"),
        ("tenure.errors", "from tenure.base import keys"),
        ("tenure.helpers", ""),
        ("tenure.manager.server", "from tenure.helpers import anything"),
        ("tenure.protocol.log.ledger", "from tenure.protocol.lease.records import AnyRecord"),
        ("tenure.protocol.log.ledger", "from tenure.protocol.lease.leader import pool"),
        ("tenure.protocol.lease.table", "from tenure.protocol.lease.leader.pool import Pool"),
        ("tenure.protocol.lease.table", "from tenure.protocol.balance.policy import Plan"),
        ("tenure.protocol.lease.owner.belief", "from tenure.protocol.lease.leader import pool"),
        ("tenure.protocol.lease.lookup.machine", "import tenure.protocol.lease.owner.events"),
        ("tenure.protocol.lease.leader.pool", "from ..owner import events"),
        ("tenure.protocol.balance.ring", "from tenure.protocol.lease.leader.pool import Pool"),
        ("tenure.protocol.gossip.digest", "from tenure.protocol.log.journal import Seat"),
        ("tenure.protocol.topology.changes", "from tenure.protocol.lease.table import Right"),
        (
            "tenure.protocol.volume.server.machine",
            "from tenure.protocol.lease.owner.belief import Belief",
        ),
        (
            "tenure.protocol.volume.client.machine",
            "from tenure.protocol.volume.server.drains import Drains",
        ),
        ("tenure.protocol.lease.table", "from tenure.protocol.helpers import anything"),
    ],
)
def test_an_import_that_goes_up_or_sideways_is_found(name: str, text: str) -> None:
    assert len(complaints(sample(name, text), set())) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tenure.base.keys", "from tenure.errors import TenureError"),
        ("tenure.base.keys", "from tenure import errors"),
        ("tenure.manager.server", "from tenure.base import keys"),
        ("tenure.services.queues", "from tenure import Owner"),
        ("tenure.sim.world", "from tenure.cli import demo"),
        ("tenure.cli.simulation", "from tenure.sim import world"),
        ("tenure.cli.simulation", "from tenure.testing import simulation"),
        ("tenure.wire.lease", "import aiohttp"),
        ("tenure.protocol.lease.records", "from tenure.protocol.log.journal import Seat"),
        ("tenure.protocol.lease.leader.pool", "from tenure.protocol.balance.policy import Plan"),
        ("tenure.protocol.topology.changes", "from tenure.protocol.log.ledger import Ledger"),
        ("tenure.protocol.lease.owner.events", "from tenure.protocol.lease.owner import belief"),
        ("tenure.wire.lease", "from tenure.protocol.lease.leader import events"),
    ],
)
def test_an_import_that_goes_down_is_not_found(name: str, text: str) -> None:
    assert complaints(sample(name, text), {"tenure.errors"}) == []


ADAPTER = "tenure.member.aiohttp."
NAMES_THE_SESSION = "tenure.member.forwarding"
"""It proves itself over the member's session, and has the type for that."""


def at_home(module: Module) -> bool:
    """Whether what a member's module imports of aiohttp is in the adapter."""
    is_member = module.name.startswith("tenure.member.") and module.name != NAMES_THE_SESSION
    if not is_member or module.name.startswith(ADAPTER):
        return True
    return all(each.module.split(".")[0] != "aiohttp" for each in imports(module))


def test_a_member_has_all_of_aiohttp_in_one_adapter() -> None:
    found = [module.path for module in modules() if not at_home(module)]
    assert found == []


def test_what_a_member_takes_from_aiohttp_elsewhere_is_found() -> None:
    assert not at_home(sample("tenure.member.listener", "from aiohttp import web"))
    assert at_home(sample("tenure.member.aiohttp.listener", "from aiohttp import web"))
