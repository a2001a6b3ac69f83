"""The commands, by topic, and what becomes of their errors.

A command is named here with the place of its function, and imported when it is run, so that `tenure
pool list` does not wait for the manager's or the demo's modules. To add a command, write a module
with its function and add a line to TOPICS.

Exit codes: 0 for success, 1 for what failed, 2 for what was asked wrongly.
"""

import errno
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import takewhile
from typing import NamedTuple

from cyclopts import App, CycloptsError, Group, Parameter, UnusedCliTokensError

from tenure import __version__
from tenure.cli.exit_codes import INTERRUPTED
from tenure.cli.output import EXAMPLE, complain
from tenure.cli.waiting import CLEAR_LINE, WaitingLine
from tenure.errors import TenureError, UsageError
from tenure.manager.operator_verbs import POOL_VERBS


class Command(NamedTuple):
    """The module of a command, its line in `tenure --help`, and an example of the command."""

    place: str
    help: str
    example: str
    """The arguments after the command's name; empty for an app, whose commands have examples."""


TOPICS = {
    "Running tenure": {
        "manager": Command(
            "manager:manager",
            "Run a manager: the service that decides who owns what.",
            "--journal sqlite:/var/lib/tenure/journal.sqlite",
        ),
        "token": Command("token:app", "Create, list and remove access tokens.", ""),
        "run": Command(
            "run:run",
            "Run a command with a manager beside it.",
            "-- uvicorn app:app --workers 4",
        ),
        "up": Command(
            "host_up:up",
            "Run a whole system on this host: a manager, a store, services, a gateway, commands.",
            "--serve documents",
        ),
        "config": Command(
            "host_up:config",
            "Check tenure.toml, and show what `tenure up` would run.",
            "--file tenure.toml",
        ),
        "serve": Command(
            "serve:serve",
            "Run a process of a service: documents, feeds, pubsub or queues.",
            "documents --pool devices --manager http://10.0.1.1:7400",
        ),
        "gateway": Command(
            "gateway:gateway",
            "Run a gateway: it passes each request to the process that owns its key.",
            "--route /rooms/{room}=rooms",
        ),
        "status": Command(
            "status:status",
            "Show the state of the managers and of their journal.",
            "--manager http://10.0.1.1:7400 --manager http://10.0.1.2:7400",
        ),
        "doctor": Command(
            "doctor:doctor",
            "Check a deployment: what is wrong, and how to fix it.",
            "--manager http://10.0.1.1:7400 --manager http://10.0.1.2:7400",
        ),
        "resolve": Command(
            "resolve:resolve",
            "Decide which of two journals with living leaders goes on.",
            "--keep http://10.0.1.1:7400",
        ),
        "restore": Command(
            "restore:restore",
            "Create a new journal from a backup of an old one.",
            "--journal sqlite:/var/lib/tenure/journal.sqlite --dry-run",
        ),
        "docs": Command("docs:docs", "Read the documentation of this version.", "operating/etcd"),
        "completion": Command(
            "completion:completion",
            "Print a shell's completion of these commands.",
            "bash > ~/.local/share/bash-completion/completions/tenure",
        ),
    },
    "Looking at a pool": {
        "pool": Command(
            "pool:app",
            "Create and list pools, and choose their policy.",
            "",
        ),
        "top": Command("top:top", "Watch a pool live: its owners by load, and events.", "rooms"),
        "events": Command("events:events", "Show recent events, and follow new ones.", "--follow"),
        "owners": Command("reading:owners", "List the owners of a pool.", "rooms --watch"),
        "table": Command("reading:table", "Show the lease table of a pool.", "rooms"),
        "locate": Command("reading:locate", "Show which owner has a key.", "rooms room-42"),
        "why": Command("explaining:why", "Explain why a key is where it is.", "rooms room-42"),
        "plan": Command(
            "explaining:plan",
            "Show the moves that the policy would make now, and what holds back the others.",
            "rooms",
        ),
    },
    "Looking into entities": {
        "entities": Command(
            "entities:app", "List the keys of entities, and show the state of one.", ""
        ),
    },
    "Steering a pool": {
        verb: Command(f"steering:{verb}", each.help, each.example)
        for verb, each in POOL_VERBS.items()
        if verb != "policy"  # which is of `tenure pool`
    },
    "Keeping rows": {
        "columns": Command(
            "columns:app",
            "Inspect, back up, check and copy a store of rows and columns.",
            "",
        ),
    },
    "Trying it out": {
        "demo": Command(
            "demo.command:demo",
            "Watch a live service while its owners are killed.",
            "--seconds 20 --rolling-restart",
        ),
        "simulate": Command(
            "simulation:simulate",
            "Run a simulated test of your own service under many seeds.",
            "test_chat:test_nobody_misses_a_line --seeds 1000",
        ),
    },
}
"""The commands that are listed together."""
COMMANDS = {name: each for commands in TOPICS.values() for name, each in commands.items()}

GO_ON = (
    *("manager", "run", "up", "serve", "gateway", "columns node", "columns up"),
    *("top", "events", "demo", "docs"),
)
"""Commands that go on until they are ended, or that have the terminal for themselves: they tell of
themselves what they are at."""
WATCH = "--watch"
FOLDERS = (["columns"], ["entities"], ["pool"], ["token"])
"""Commands of which there are several under one name."""

FAILED = 1
WRONG = 2
NO_OUTPUT = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def build() -> App:
    """The application, with every command still to be imported."""
    app = App(
        name="tenure",
        help="One owner for every key, in a pool of ordinary Python processes.",
        version=__version__,
        result_action="return_value",
        suppress_keyboard_interrupt=False,
        help_format="plaintext",
        default_parameter=Parameter(show_default=False),
    )
    for number, (topic, commands) in enumerate(TOPICS.items()):
        group = Group(topic, sort_key=number)
        for name, (place, about, example) in commands.items():
            more = {"help_epilogue": EXAMPLE.format(f"{name} {example}")} if example else {}
            app.command(f"tenure.cli.{place}", name=name, help=about, group=group, **more)
    return app


def _check_dashes(arguments: Sequence[str]) -> None:
    """Raise UsageError where nobody can tell whose the options after `tenure run` are."""
    if arguments[:1] != ["run"] or "--" in arguments:
        return
    if any(each in ("--help", "-h") for each in arguments) or len(arguments) == 1:
        return
    raise UsageError(
        "write two dashes between the options of tenure run and the command, as in: tenure run "
        "--port 7400 -- uvicorn app:app --port 8000. Without them nobody can tell which of the two "
        "an option is for"
    )


def run(arguments: Sequence[str]) -> int:
    """Run the command in `arguments`; the exit code."""
    return run_in(build(), arguments)


def run_in(app: App, arguments: Sequence[str]) -> int:
    """Run a command of this application; the exit code."""
    (program,) = app.name
    try:
        _check_dashes(arguments)
        with at_work(arguments, program):
            result = app(arguments, exit_on_error=False, print_error=False)
        sys.stdout.flush()
    except CycloptsError as error:
        asked = " ".join((program, *(error.command_chain or ())))
        complain(f"{_in_words(error)} See {asked} --help")
        return WRONG
    except UsageError as error:
        complain(str(error))
        return WRONG
    except TenureError as error:
        complain(str(error))
        return FAILED
    except KeyboardInterrupt:
        if sys.stderr.isatty():  # it has drawn ^C, perhaps behind half a line
            print(CLEAR_LINE, end="", file=sys.stderr, flush=True)
        return INTERRUPTED
    except BrokenPipeError:  # whoever read the output has seen enough, as in `| head`
        _say_no_more()
        return FAILED
    except OSError as error:  # files and connections have errors of their own
        if error.errno not in NO_OUTPUT:
            raise
        _say_no_more()
        complain(f"the output cannot be written: {error.strerror}")
        return FAILED
    return result if isinstance(result, int) else 0


def at_work(
    arguments: Sequence[str], program: str = "tenure"
) -> AbstractContextManager[WaitingLine | None]:
    """A line for a command that takes long, unless it is one that goes on until it is ended."""
    words = list(takewhile(lambda each: not each.startswith("-"), arguments))
    command = " ".join(words[: 1 + (words[:1] in FOLDERS)])
    if command in GO_ON or WATCH in arguments:
        return nullcontext()
    said = f"{program} {command}".rstrip()
    return WaitingLine(lambda: f"{said}: still working")


def _say_no_more() -> None:
    """Python writes out what is left when it exits, and would fail at that once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _in_words(error: CycloptsError) -> str:
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        what = "argument" if len(error.unused_tokens) == 1 else "arguments"
        return f"Unexpected {what} {' '.join(map(repr, error.unused_tokens))}."
    return str(error)
