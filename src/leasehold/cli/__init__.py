"""The command line. What it needs beyond the library comes with the extra `server`."""

import sys

EXTRA = ("cyclopts", "rich")


def main() -> None:
    """Run the command that the process was started with; exits with its code."""
    try:
        from leasehold.cli.app import run
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in EXTRA:
            raise
        print(
            f"leasehold: the command line needs {' and '.join(EXTRA)}, and {error.name} is not "
            "installed. They come with the extra: pip install 'leasehold[server]'",
            file=sys.stderr,
        )
        sys.exit(1)
    sys.exit(run(sys.argv[1:]))
