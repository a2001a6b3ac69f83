"""The commands of the lab that have options like those of `tenure`."""

from collections.abc import Sequence

from cyclopts import App, Parameter

from tenure.cli.app import run_in

PLACES = {
    "demo": ("lab.demo.command:app", "Watch a demo other than that of the first page."),
    "record": ("lab.recording.command:record", "Print the recording that the documents play."),
    "simulate": ("lab.simulate.command:simulate", "Run a tier through simulated years of faults."),
    "trace": (
        "lab.trace.command:trace",
        "Compare ways to keep caches consistent, as the paper did.",
    ),
}


def run(arguments: Sequence[str]) -> int:
    """Run the command in `arguments`; the exit code."""
    return run_in(build(), arguments)


def build() -> App:
    """The application, with every command still to be imported."""
    app = App(
        name="python -m lab",
        result_action="return_value",
        suppress_keyboard_interrupt=False,
        help_format="plaintext",
        default_parameter=Parameter(show_default=False),
    )
    for name, (place, about) in PLACES.items():
        app.command(place, name=name, help=about)
    return app
