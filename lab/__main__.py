"""`python -m lab`: what there is in the lab."""

import sys
from collections.abc import Callable, Sequence

from lab import hunt, simulate
from lab.histories import recorded_run

COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "histories": recorded_run.main,
    "hunt": hunt.main,
    "simulate": simulate.main,
}


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says; 2 if it names nothing that there is."""
    command = COMMANDS.get(arguments[0]) if arguments else None
    if command is None:
        print(f"usage: python -m lab {'|'.join(COMMANDS)} [options]", file=sys.stderr)
        return 2
    return command(arguments[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
