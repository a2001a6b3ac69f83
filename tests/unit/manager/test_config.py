"""A manager's settings: what they are when nothing is said, and what is refused."""

from pathlib import Path

import pytest

from leasehold.errors import ConfigurationError
from leasehold.manager.config import ManagerSettings, state_directory
from leasehold.protocol.lease.manager_events import CreatePool


def test_nothing_said_is_a_journal_in_the_state_directory_and_the_default_preset() -> None:
    settings = ManagerSettings()
    assert (settings.host, settings.port) == ("127.0.0.1", 7400)
    assert settings.timing.name == "default"
    url = settings.journal_url({"LEASEHOLD_STATE": "/var/lib/leasehold"})
    assert url == "sqlite:/var/lib/leasehold/journal.sqlite"


def test_the_state_directory_is_our_own_variable_then_xdg_then_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    xdg = {"XDG_STATE_HOME": "/xdg"}
    assert state_directory({"LEASEHOLD_STATE": "/own", **xdg}) == Path("/own")
    assert state_directory(xdg) == Path("/xdg/leasehold")
    home = tmp_path / ".local" / "state" / "leasehold"
    assert state_directory({}) == home
    assert state_directory({"XDG_STATE_HOME": "not/absolute"}) == home


def test_a_journal_or_a_state_directory_that_is_said_wins() -> None:
    environment = {"LEASEHOLD_STATE": "/own"}
    assert ManagerSettings(journal="memory").journal_url(environment) == "memory"
    said = ManagerSettings(state_dir=Path("/said"))
    assert said.journal_url(environment) == "sqlite:/said/journal.sqlite"


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ({"port": 65_536}, "there is no port 65536"),
        ({"port": -1}, "there is no port -1"),
        ({"host": ""}, "the host is empty"),
        ({"preset": "fast"}, "'fast'.*paper, default, test"),
        ({"advertise": "10.0.0.1:7400"}, "advertised URL is '10.0.0.1:7400'"),
        ({"advertise": "http://a/path"}, "no address of a manager"),
        ({"advertise": "http://me:secret@a"}, "no address of a manager"),
        ({"advertise": "http://a:port"}, "no address of a manager"),
        ({"advertise": "http://[a"}, "no address of a manager"),
        (
            {"pools": (CreatePool("a", "hashed"), CreatePool("a", "ordered"))},
            "'a' is config.*twice",
        ),
    ],
)
def test_what_cannot_be_is_refused(said: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        ManagerSettings(**said)  # type: ignore[arg-type]
