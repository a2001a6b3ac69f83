"""The demo without a terminal."""

from io import StringIO

from tenure.cli.demo.lines import Lines
from tests.unit.cli.demo.pictures import picture, row


def test_an_event_is_a_line_with_its_time() -> None:
    stream = StringIO()
    lines = Lines(stream)
    lines.event(None, "starting")
    lines.event(12.34, "killed owner 2")
    lines.close()
    assert stream.getvalue() == "          starting\n  12.3 s  killed owner 2\n"


def test_how_it_goes_is_a_line_every_five_seconds() -> None:
    stream = StringIO()
    lines = Lines(stream)
    for elapsed in (0.0, 4.9, 5.1, 5.3, 9.9, 10.0, 25.0, 26.0):
        lines.show(picture(elapsed))
    times = [line.split()[0] for line in stream.getvalue().splitlines()]
    assert times == ["5.1", "10.0", "25.0"]


def test_how_it_goes_has_everything_that_counts() -> None:
    stream = StringIO()
    Lines(stream).show(picture(5.0, row(1), row(2, "killed", 0.23), double_owner=1))
    assert stream.getvalue() == (
        "   5.0 s  301 requests/s; keys: owner 1 50%, owner 2 23% (killed); failed 0, rerouted 60, "
        "losses 6, republished 1,070, two owners at once 1\n"
    )
