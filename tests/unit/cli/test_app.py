"""The command line: its commands, its exit codes, and what it costs to start."""

import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts import App

from tenure import __version__
from tenure.cli.app import COMMANDS, TOPICS, Command, build, run
from tenure.errors import ConfigurationError, JournalDamaged

APPS = {
    "pool": ("create", "delete", "list", "policy"),
    "columns": (
        *("inspect", "get", "scan", "insert", "delete"),
        *("compact", "backup", "restore", "check", "copy"),
        *("create", "forget", "clusters", "ring", "add", "remove", "replace"),
        *("move", "take-back", "moves", "balance"),
    ),
    "token": ("new", "list", "remove"),
    "entities": ("list", "show", "export", "import"),
}
"""Commands that have commands."""


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_where_it_is_said_to_be(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([command, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: tenure {command}")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_an_example_that_could_be_run(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    helps = [[command, each] for each in APPS.get(command, ())] or [[command]]
    for words in helps:
        assert run([*words, "--help"]) == 0
        *_, example = capsys.readouterr().out.splitlines()
        program, *tokens = example.strip().partition(" > ")[0].split()
        assert program == "tenure"
        assert tokens[: len(words)] == words
        build().parse_args(tokens, exit_on_error=False, print_error=False)


def described(app: App, words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield, for each parameter of each command under `app`, where it is and what its help says."""
    for name in app:
        if name.startswith("-"):
            continue
        command = app[name]
        yield from described(command, (*words, name))
        if command.default_command is not None:
            for each in command.assemble_argument_collection(parse_docstring=True):
                if each.show:
                    yield " ".join((*words, name, *each.names[:1])), each.parameter.help or ""


def test_every_argument_is_described() -> None:
    found = dict(described(build(), ()))
    assert len(found) > len(COMMANDS)
    assert [where for where, text in found.items() if not text.strip()] == []


@pytest.mark.parametrize(
    ("shell", "says"),
    [("bash", "complete -F"), ("zsh", "#compdef tenure"), ("fish", "complete -c tenure")],
)
def test_a_shell_is_told_of_all_commands(
    shell: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert says in script, "in its own words"
    assert all(name in script for name in COMMANDS)
    assert "confirmed-dead" in script


def test_an_interrupted_command_leaves_a_clean_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tenure.cli.status.ask_all", interrupted)
    assert run(["status"]) == 130
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert run(["status"]) == 130
    assert capsys.readouterr() == ("", "\r\x1b[K")


def test_every_command_is_listed_with_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for name, command in COMMANDS.items():
        assert f"{name} {command.help}" in shown
    places = [shown.index(topic) for topic in TOPICS]
    assert places == sorted(places)


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"{__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["manger"], 'Unknown command "manger". Did you mean "manager"?'),
        (["status", "--helpp"], "Unknown option: --helpp"),
        (["pool", "create", "rooms"], "--kind requires an argument"),
        (["pool", "create", "rooms", "--kind", "hash"], '"hash" for --kind'),
        (["pool", "create", "rooms", "--kind", "hashed", "--split", "g"], "ordered pools"),
        (["pool", "create", "a", "--kind", "ordered", "--split-hex", "x"], "not hexadecimal"),
        (["locate", "rooms", "a", "--hex", "--int"], "--hex or --int, not both"),
        (["owners", "rooms", "--manager", "localhost"], "--manager is 'localhost'"),
        (["manager", "--port", "x"], 'unable to convert "x" into int'),
        (["manager", "--preset", "fast"], '"fast" for --preset'),
        (["demo", "--seconds", "inf"], '"inf" for --seconds'),
        (["demo", "fast"], "Unexpected argument 'fast'. See tenure demo --help"),
        (["pool", "create"], "NAME requires an argument. See tenure pool create --help"),
        (["manger", "x"], "See tenure --help"),
    ],
)
def test_what_is_asked_wrongly_is_one_paragraph_and_code_2(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("tenure: ")
    assert said.err.count("\n") == 1
    assert complaint in said.err


@pytest.mark.parametrize(
    ("command", "code"), [("misused", 2), ("failing", 1), ("interrupted", 130), ("exiting", 1)]
)
def test_the_exit_code_says_whose_fault_it_was(
    command: str,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    added = {command: Command(f"of_this_test:{command}", "For this test.", "")}
    monkeypatch.setitem(TOPICS, "Testing", added)
    monkeypatch.setitem(sys.modules, "tenure.cli.of_this_test", sys.modules[misused.__module__])
    assert run([command]) == code
    assert "Traceback" not in capsys.readouterr().err


def misused() -> None:
    raise ConfigurationError("no such thing")


def failing() -> None:
    raise JournalDamaged("this disk forgets")


def interrupted() -> None:
    raise KeyboardInterrupt


def exiting() -> int:
    return 1


@pytest.mark.parametrize(
    "said",
    [["uvicorn", "app:app"], ["uvicorn", "app:app", "--port", "8000"], ["--port", "1", "uvicorn"]],
)
def test_run_refuses_a_command_whose_options_could_be_its_own(
    said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["run", *said]) == 2
    assert "write two dashes" in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["cyclopts", "rich"])
def test_without_the_extra_it_says_what_to_install(missing: str) -> None:
    program = (
        f"import sys; sys.modules['{missing}'] = None; sys.argv = ['tenure', 'status'];"
        "from tenure.cli import main; main()"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert ran.returncode == 1
    assert "pip install 'tenure[server]' (in a clone: make setup)" in ran.stderr
    assert f"{missing} is not installed" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_an_interrupt_while_it_loads_is_no_traceback() -> None:
    program = (
        "import sys\nclass Interrupts:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'tenure.cli.app': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupts())\n"
        "from tenure.cli import main\nmain()"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert (ran.returncode, ran.stderr) == (130, "")


def test_a_command_loads_neither_the_manager_nor_other_commands() -> None:
    program = (
        "import sys; from tenure.cli.app import run; run(['status', '--help']);"
        "print(*sys.modules, file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    loaded = set(ran.stderr.split())
    assert "tenure.cli.status" in loaded
    heavy = {
        "tenure.manager.service",
        "tenure.cli.manager",
        "tenure.journals",
        "aiohttp.web",
        "sqlite3",
    }
    assert loaded & heavy == set()


def test_it_can_be_run_as_a_module() -> None:
    command = [sys.executable, "-m", "tenure", "--version"]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == (
        f"{__version__}\n"
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="of Linux")
@pytest.mark.parametrize(("where", "code"), [("> /dev/full", 1), (">&-", 0), ("2>&-", 0)])
def test_where_nothing_can_be_written_a_command_says_so_in_a_line(where: str, code: int) -> None:
    """A full disk, and an output that was closed before the command began."""
    command = f"{shlex.quote(sys.executable)} -m tenure docs {where}"
    ran = subprocess.run(["sh", "-c", command], check=False, capture_output=True, text=True)
    said = "tenure: the output cannot be written: No space left on device\n" if code else ""
    assert (ran.returncode, ran.stderr) == (code, said)
