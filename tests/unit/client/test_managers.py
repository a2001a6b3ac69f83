"""The managers are found in the call, in the environment, or in a file that is read again."""

import asyncio
from pathlib import Path

import pytest

from tenure import Lookup, Owner
from tenure.client.managers import find_managers
from tenure.client.managers_file import MOST_BYTES, ManagersFile
from tenure.errors import ConfigurationError
from tenure.testing.clock import TurnedClock
from tenure.testing.cluster import ClusterEnvironment, InProcessCluster

A, B = "http://10.0.0.1:7400", "http://10.0.0.2:7400"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("TENURE_MANAGERS", raising=False)
    monkeypatch.delenv("TENURE_MANAGERS_FILE", raising=False)
    return tmp_path / "managers"


def test_a_file_has_a_manager_on_each_line(path: Path) -> None:
    path.write_text(f"# ours\n{A}/\n\n  {B}  # the new one\n{A}\n")
    found = find_managers(f"@{path}")
    assert found.urls == (A, B)
    assert found.file is not None


def test_the_environment_names_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_text(A)
    monkeypatch.setenv("TENURE_MANAGERS_FILE", str(path))
    assert find_managers(None).urls == (A,)
    assert find_managers(B).urls == (B,), "what is said in the call wins"


def test_managers_named_twice_are_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_text(A)
    monkeypatch.setenv("TENURE_MANAGERS_FILE", str(path))
    monkeypatch.setenv("TENURE_MANAGERS", B)
    with pytest.raises(ConfigurationError, match=r"named twice.* unset one of them"):
        find_managers(None)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (f"{A}\nhost:7400\n".encode(), r"managers, line 2: 'host:7400' is not .*; write it like"),
        (b"# nobody\n", "managers: it names no manager; write one URL a line, such as http"),
        (b"\xff\n", "managers: it cannot be read: .*; write one URL a line"),
        (b"#" * (MOST_BYTES + 1), "managers: it is longer than 65536 bytes"),
    ],
)
def test_a_file_that_cannot_be_used(path: Path, content: bytes, complaint: str) -> None:
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=complaint):
        ManagersFile(str(path)).read()


def test_a_file_that_is_not_there(path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"managers: it cannot be read: .*No such file"):
        ManagersFile(str(path)).read()


def test_only_a_file_that_has_changed_has_news(path: Path) -> None:
    path.write_text(A)
    file = ManagersFile(str(path))
    assert file.read() == (A,)
    assert file.news() is None
    path.write_text(f"{A}\n{B}")
    assert file.news() == (A, B)
    assert file.news() is None
    path.unlink()
    assert file.news() is None, "it is being replaced"


def test_a_file_that_became_useless_is_told_once(path: Path) -> None:
    path.write_text(A)
    file = ManagersFile(str(path))
    file.read()
    path.write_text("nonsense")
    with pytest.raises(ConfigurationError, match="line 1: 'nonsense'"):
        file.news()
    assert file.news() is None


def write(path: Path, text: str) -> None:
    path.write_text(text)


# --- while clients run ----------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_a_manager_placed_into_service_is_found_without_a_restart(path: Path) -> None:
    """Centrifuge, section 2.1.1."""
    write(path, "http://retired.test:7400\n")
    async with InProcessCluster(["rooms"], clock=TurnedClock()) as cluster:
        world = ClusterEnvironment(cluster)
        lookup = Lookup(f"@{path}", pool="rooms", _environment=world)
        owner = Owner(f"@{path}", pool="rooms", address="http://a", _environment=world)
        entering = [asyncio.create_task(each.__aenter__()) for each in (owner, lookup)]
        await cluster.turn(1)
        assert not any(each.done() for each in entering)
        write(path, f"{cluster.urls[0]}  # in its place\n")
        await cluster.turn(10)
        await asyncio.gather(*entering)
        assert lookup.find("x") == "http://a"
        await asyncio.gather(owner.close(), lookup.close())
