"""A manager's settings: what they are when nothing is said, and what is refused."""

from pathlib import Path

import pytest

from tenure.errors import ConfigurationError
from tenure.manager.config import ManagerSettings, state_directory
from tenure.protocol.lease.leader.events import CreatePool


def test_nothing_said_is_a_journal_in_the_state_directory_and_the_default_preset() -> None:
    settings = ManagerSettings()
    assert (settings.host, settings.port) == ("127.0.0.1", 7400)
    assert settings.timing.name == "default"
    url = settings.journal_url({"TENURE_STATE": "/var/lib/tenure"})
    assert url == "sqlite:/var/lib/tenure/journal.sqlite"


def test_the_state_directory_is_our_own_variable_then_xdg_then_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    xdg = {"XDG_STATE_HOME": "/xdg"}
    assert state_directory({"TENURE_STATE": "/own", **xdg}) == Path("/own")
    assert state_directory(xdg) == Path("/xdg/tenure")
    home = tmp_path / ".local" / "state" / "tenure"
    assert state_directory({}) == home
    assert state_directory({"XDG_STATE_HOME": "not/absolute"}) == home


def test_a_journal_or_a_state_directory_that_is_said_wins() -> None:
    environment = {"TENURE_STATE": "/own"}
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
        ({"advertise": "http://a/path"}, "not the address of a manager"),
        ({"advertise": "http://me:secret@a"}, "not the address of a manager"),
        ({"advertise": "http://a:port"}, "not the address of a manager"),
        ({"advertise": "http://[a"}, "not the address of a manager"),
        (
            {"pools": (CreatePool("a", "hashed"), CreatePool("a", "ordered"))},
            "'a' is config.*twice",
        ),
    ],
)
def test_what_cannot_be_is_refused(said: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        ManagerSettings(**said)  # type: ignore[arg-type]
