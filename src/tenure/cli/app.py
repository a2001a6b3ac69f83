"""The commands, and what becomes of their errors.

A command is named here with the place of its function, and imported when it is run: `tenure
pool list` is felt at the keyboard, and pays for neither the manager nor the demo. To add a command,
write a module with its function and add a line to COMMANDS.

Exit codes: 0 for success, 1 for what failed, 2 for what was asked wrongly.
"""

import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

from cyclopts import App, CycloptsError, Parameter, UnusedCliTokensError

from tenure import __version__
from tenure.cli.output import complain
from tenure.errors import TenureError, UsageError


class Command(NamedTuple):
    """Where a command is, and the line that `tenure --help` has about it."""

    place: str
    help: str


COMMANDS = {
    "manager": Command(
        "tenure.cli.manager:manager", "Run a manager: the service that decides who owns what."
    ),
    "pool": Command("tenure.cli.pool:app", "Make pools, and see which there are."),
    "owners": Command("tenure.cli.reading:owners", "List the owners of a pool."),
    "table": Command("tenure.cli.reading:table", "Show the lease table of a pool."),
    "locate": Command("tenure.cli.reading:locate", "Say who has a key."),
    "drain": Command("tenure.cli.steering:drain", "Move everything away from an owner."),
    "cordon": Command("tenure.cli.steering:cordon", "Give an owner nothing new."),
    "uncordon": Command(
        "tenure.cli.steering:uncordon", "End the cordon, or the drain, of an owner."
    ),
    "pin": Command("tenure.cli.steering:pin", "Keep a key at an owner."),
    "unpin": Command("tenure.cli.steering:unpin", "Let a key go where the policy has it."),
    "freeze": Command("tenure.cli.steering:freeze", "Balance nothing in a pool."),
    "unfreeze": Command("tenure.cli.steering:unfreeze", "Balance a pool again."),
    "evict": Command("tenure.cli.steering:evict", "Renew an owner's leases no more."),
    "why": Command("tenure.cli.explaining:why", "Say why a key is where it is."),
    "plan": Command("tenure.cli.explaining:plan", "Say what the policy would do now."),
    "demo": Command(
        "tenure.cli.demo.command:demo", "Watch a service live: owners die, and no key has two."
    ),
    "simulate": Command(
        "tenure.cli.simulate.command:simulate",
        "Run the protocol through simulated years of faults.",
    ),
    "trace": Command(
        "tenure.cli.trace:trace", "Compare ways to keep caches consistent, as the paper did."
    ),
    "restore": Command(
        "tenure.cli.restore:restore", "Go on from an old copy of a journal, as a new one."
    ),
    "status": Command("tenure.cli.status:status", "Say how the managers and their journal are."),
}

FAILED = 1
WRONG = 2
INTERRUPTED = 130  # what shells give for a process that SIGINT ended


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
    for name, command in COMMANDS.items():
        app.command(command.place, name=name, help=command.help)
    return app


def run(arguments: Sequence[str]) -> int:
    """Run the command in `arguments`; the exit code."""
    try:
        result = build()(arguments, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        asked = " ".join(("tenure", *(error.command_chain or ())))
        complain(f"{_in_words(error)} See {asked} --help")
        return WRONG
    except UsageError as error:
        complain(str(error))
        return WRONG
    except TenureError as error:
        complain(str(error))
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever read the output has seen enough, as in `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    return result if isinstance(result, int) else 0


def _in_words(error: CycloptsError) -> str:
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        return f"There is no place for {' '.join(map(repr, error.unused_tokens))}."
    return str(error)
