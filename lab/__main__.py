"""`python -m lab`: what there is in the lab."""

import sys
from collections.abc import Callable, Sequence

from lab import commands, hunt
from lab.histories import recorded_run
from lab.histories.entities import kill_run

COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "histories": recorded_run.main,
    "hunt": hunt.main,
    "kills": kill_run.main,
}


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says; 2 if it names nothing that there is."""
    name = arguments[0] if arguments else ""
    if name in commands.PLACES:
        return commands.run(arguments)
    if name not in COMMANDS:
        known = sorted({*COMMANDS, *commands.PLACES})
        print(f"usage: python -m lab {'|'.join(known)} [options]", file=sys.stderr)
        return 2
    return COMMANDS[name](arguments[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
