"""tenure.toml: what is in force, what says so, and what each mistake is told with."""

import json
from pathlib import Path

import pytest

from tenure.cli.app import run
from tenure.cli.host_file import HostOptions, PlanMaker
from tenure.cli.host_system import HostSystem

WHOLE = """\
data = "kept"
nodes = 1

[gateway]
listen = "127.0.0.1:9000"
route = ["/rooms/{room}=rooms"]

[[serve]]
service = "documents"
ttl = 60

[[serve]]
service = "queues"
pool = "mail"
store = "sqlite:mail.db"

[[command]]
run = "uvicorn 'chat:app' --workers 4"
environment = { LEVEL = "debug" }
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("TENURE_DATA", "TENURE_PORT", "TENURE_NODES"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "tenure.toml"


def test_a_plan_is_commands_as_a_user_types_them(file: Path) -> None:
    file.write_text(WHOLE)
    system = HostSystem(PlanMaker(HostOptions()).plan())
    assert system.programs() == ["documents", "mail", "gateway", "uvicorn"]
    said = {name: system.command(name) for name in system.programs()}
    assert said["uvicorn"] == ["uvicorn", "chat:app", "--workers", "4"]
    assert said["documents"][2:] == [
        "tenure",
        "serve",
        "documents",
        "--store=columns:",
        "--ttl=60.0",
    ]
    assert said["mail"][4:] == ["queues", "--pool=mail", "--store=sqlite:mail.db"]
    assert said["gateway"][3:] == [
        *("gateway", "--listen=127.0.0.1:9000", "--route=/rooms/{room}=rooms"),
        *("--rest=http://127.0.0.1:8000", "--member-routes"),
    ]
    environment = system.environment("uvicorn")
    assert environment is not None
    assert environment["TENURE_MANAGERS"] == "http://127.0.0.1:7499"
    assert environment["TENURE_STORE"] == "columns:http://127.0.0.1:7500"
    assert environment["LEVEL"] == "debug"
    assert "--first-start" in system.command("manager")


def test_without_a_file_there_are_a_manager_and_a_store(file: Path) -> None:
    assert not file.exists()
    system = HostSystem(PlanMaker(HostOptions(serve=("documents",), nodes=0)).plan())
    assert system.programs() == ["documents"]
    assert system.command("documents")[3:] == ["serve", "documents"]
    environment = system.environment("documents")
    assert environment is not None
    assert "TENURE_STORE" not in environment


def test_the_command_line_counts_before_the_environment_and_that_before_the_file(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text("port = 1\nnodes = 1\n")
    monkeypatch.setenv("TENURE_PORT", "2")
    monkeypatch.setenv("TENURE_NODES", "2")
    assert run(["config", "--nodes", "5", "--json"]) == 0
    found = {each["setting"]: each for each in json.loads(capsys.readouterr().out)}
    assert found["port"] == {"setting": "port", "value": 2, "source": "TENURE_PORT"}
    assert found["nodes"] == {"setting": "nodes", "value": 5, "source": "--nodes"}
    assert found["data"]["source"] == "default"
    monkeypatch.delenv("TENURE_PORT")
    assert run(["config"]) == 0
    assert "port\t1\ttenure.toml:1\n" in capsys.readouterr().out


def test_passwords_in_urls_are_not_shown_and_reach_what_they_are_for(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """People send each other what `tenure config` prints."""
    store = "postgresql://app:hunter2@db/mail?sslpassword=hunter2"
    file.write_text(
        f'[[serve]]\nservice = "queues"\nstore = "{store}"\n'
        '[[command]]\nrun = "chat"\nenvironment = { DB = "redis://:hunter2@cache", AT = "h:80" }\n'
    )
    for form in ([], ["--json"]):
        assert run(["config", *form]) == 0
        said = capsys.readouterr().out
        assert "hunter2" not in said
        assert "postgresql://...@db/mail" in said
        assert "redis://...@cache" in said
        assert "h:80" in said
    system = HostSystem(PlanMaker(HostOptions()).plan())
    assert f"--store={store}" in system.command("queues")
    assert (system.environment("chat") or {})["DB"] == "redis://:hunter2@cache"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nodes = 1\nport = = 2", "tenure.toml is not TOML: Invalid value (at line 2, column 8)"),
        ("\nprot = 7", "tenure.toml:2: there is no setting 'prot'; did you mean port?"),
        ("port = 0", "tenure.toml:1: port: Expected `int` >= 1, not 0"),
        ("nodes = 17", "tenure.toml:1: nodes: Expected `int` <= 16, not 17"),
        ("nodes = true", "tenure.toml:1: nodes: Expected `int`, got `bool`, not True"),
        ('preset = "slow"', "tenure.toml:1: preset: Invalid enum value 'slow', not 'slow'"),
        ("[gateway]\n\nlisten = 7", "tenure.toml:3: listen: Expected `str`, got `int`, not 7"),
        ("[[gateway]]", "tenure.toml:1: gateway begins with a line [gateway], in single"),
        ("[serve]", "tenure.toml:1: serve begins with a line [[serve]], in double"),
        ("[[serve]]\nttl = 1", "tenure.toml:1: service is one of documents, feeds, pubsub, queues"),
        (
            '[[serve]]\nservice = "feeds"\n[[serve]]\nservice = "feeds"\nstroe = "x"',
            "tenure.toml:5: there is no setting 'stroe'; did you mean store?",
        ),
        (
            '[[serve]]\nservice = "feeds"\n[[serve]]\nservice = "feeds"',
            "tenure.toml:3: there are two processes called 'feeds'",
        ),
        ('[[serve]]\nservice = "feeds"\nmanager = "x"', "tenure.toml:3: there is no setting 'man"),
        ('[[command]]\nrun = ""', "tenure.toml:2: run is empty"),
        ('[[command]]\nrun = "a \'b"', "tenure.toml:2: run: No closing quotation"),
        ('[[command]]\nname = "a"', "tenure.toml:1: Object missing required field `run`"),
        ('[[command]]\nname = "../x"\nrun = "x"', "tenure.toml:2: '../x' cannot be the name"),
        ('[[command]]\nname = "node-1"\nrun = "x"', "tenure.toml:2: 'node-1' cannot be the name"),
    ],
)
def test_a_mistake_is_told_with_its_line(
    file: Path, text: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(text)
    for command in ("config", "up"):
        assert run([command]) == 2
        assert told in capsys.readouterr().err.replace("\n", " ")


def test_a_mistake_in_the_environment_and_a_file_that_is_not_there(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["config", "--file", "no.toml"]) == 2
    assert "no.toml cannot be read" in capsys.readouterr().err
    monkeypatch.setenv("TENURE_NODES", "many")
    assert run(["config"]) == 2
    assert "TENURE_NODES is 'many'" in capsys.readouterr().err
    file.write_bytes(b"#" * ((1 << 20) + 1))
    assert run(["config"]) == 2
    assert "has more than 1048576 bytes" in capsys.readouterr().err
