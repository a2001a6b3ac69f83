"""The configuration file: what it may say, and how it is refused."""

from pathlib import Path

import pytest

from tenure.errors import ConfigurationError
from tenure.manager.config import ManagerSettings
from tenure.manager.config_file import settings_from
from tenure.manager.limits import ManagerLimits
from tenure.protocol.lease.leader.events import CreatePool

WHOLE = """
host = "127.0.0.2"
port = 7401
journal = "memory"
state_dir = "/var/lib/tenure"
preset = "paper"
advertise = "http://manager.example"
create_pools = false
insecure = true

[[pool]]
name = "rooms"
kind = "hashed"

[[pool]]
name = "documents"
kind = "ordered"
split_points = ["n", "g", { hex = "ff00" }]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tenure.toml"


def test_everything_can_be_configured(file: Path) -> None:
    file.write_text(WHOLE)
    assert settings_from(file) == ManagerSettings(
        host="127.0.0.2",
        port=7401,
        journal="memory",
        state_dir=Path("/var/lib/tenure"),
        preset="paper",
        advertise="http://manager.example",
        create_pools=False,
        insecure=True,
        pools=(
            CreatePool("rooms", "hashed"),
            CreatePool("documents", "ordered", (b"g", b"n", b"\xff\x00")),
        ),
    )


def test_other_names_are_configured_as_a_list(file: Path) -> None:
    file.write_text("known_as = ['tenure.internal', 'tenure']")
    assert settings_from(file).known_as == ("tenure.internal", "tenure")


def test_limits_are_a_table(file: Path) -> None:
    file.write_text("[limits]\nconnections = 100\nsilent_seconds = 2.5")
    assert settings_from(file).limits == ManagerLimits(connections=100, silent_seconds=2.5)


def test_what_is_said_on_the_command_line_wins_and_none_is_not_said(file: Path) -> None:
    file.write_text("port = 7401\npreset = 'paper'")
    assert settings_from(file, port=0, preset=None) == ManagerSettings(port=0, preset="paper")
    assert settings_from(None, port=1) == ManagerSettings(port=1)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("jornal = 'memory'", "no setting 'jornal'; did you mean journal?"),
        ("zzz = 1", "no setting 'zzz'; There are: host, port"),
        ("first_start = true", "first_start cannot be configured; it applies to one start"),
        ("port = '7400'", "port is '7400', and should be a whole number"),
        ("port = true", "port is True, and should be a whole number"),
        ("known_as = 'a'", "known_as is 'a', and should be a list of names"),
        ("known_as = [1]", r"known_as is \[1\], and should be a list of names"),
        ("limits = 1", r"limits is 1, and should be a table: \[limits\]"),
        ("[limits]\nconections = 1", "no setting 'conections'; did you mean connections?"),
        ("[limits]\nconnections = 'a'", "limits: .*; a limit is a number"),
        ("[limits]\nconnections = 0", "limits: connections is 0; a limit is more than 0"),
        ("insecure = 1", "insecure is 1, and should be true or false"),
        ("port = 70000", "there is no port 70000"),
        ("port =", "is not TOML"),
        ("[pool]\nname = 'a'", r"begins with a line \[\[pool\]\]"),
        ("[[pool]]\nkind = 'hashed'", "pool 1 has no name"),
        ("[[pool]]\nname = 'a'", "pool 1 has no kind"),
        ("[[pool]]\nname = 'a'\nkind = 'hashed'\nsplits = []", "'splits'; did you mean split_po"),
        ("[[pool]]\nname = 'a'\nkind = 'hash'", "its kind is 'hash', and can only be hashed"),
        ("[[pool]]\nname = ''\nkind = 'hashed'", "'' cannot be a pool's name"),
        ("[[pool]]\nname = 'a'\nkind = 'ordered'\nsplit_points = [1]", "split_points is a list"),
        ("[[pool]]\nname = 'a'\nkind = 'ordered'\nsplit_points = [{hex = 'x'}]", "'x' is not hex"),
    ],
)
def test_what_is_wrong_is_named_with_the_file(file: Path, text: str, complaint: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=complaint) as refused:
        settings_from(file)
    assert str(file) in str(refused.value) or "70000" in text


def test_a_file_that_cannot_be_read_is_named(file: Path) -> None:
    with pytest.raises(ConfigurationError, match=f"{file} cannot be read: No such file"):
        settings_from(file)
    file.write_bytes(b"host = '\xff'")
    with pytest.raises(ConfigurationError, match="is not TOML"):
        settings_from(file)
