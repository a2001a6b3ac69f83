"""The recording of the documents: what its page says of it is so."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from lab.commands import run
from lab.recording.story import SCRIPT, Frame, Recording, recorded
from lab.recording.world import NOBODY, OWNERS
from tenure.protocol.lease.timing import DEFAULT

PAGE = Path(__file__).resolve().parents[4] / "docs" / "start" / "live.md"
ANN, BOB, CLEO, DAN = "0123"


@pytest.fixture(scope="module")
def recording() -> Recording:
    return recorded()


def during(recording: Recording, part: int) -> Iterator[Frame]:
    """The frames of one part of the script."""
    begins = [told.at for told in recording.told if told.text in {each.text for each in SCRIPT}]
    ends = [*begins[1:], recording.seconds]
    return (each for each in recording.frames if begins[part] < each.at <= ends[part])


def dark_seconds(recording: Recording, part: int) -> float:
    """How long some keys had no owner in that part, in one go."""
    longest, since = 0.0, None
    for frame in during(recording, part):
        if NOBODY in frame.held:
            since = frame.at if since is None else since
        elif since is not None:
            longest, since = max(longest, frame.at - since), None
    assert since is None, "the part ends when every key has an owner"
    return longest


def test_it_is_the_same_each_time(recording: Recording) -> None:
    assert recorded() == recording


def test_it_is_as_long_as_its_page_says(recording: Recording) -> None:
    assert f"{recording.seconds:.0f} seconds" in " ".join(PAGE.read_text("utf-8").split())


def test_losses_are_told_after_the_kill_and_the_cut_and_never_else(recording: Recording) -> None:
    lines = [each.text for each in recording.told]
    losses = [at for at, text in enumerate(lines) if text.startswith("The client is told")]
    assert len(losses) == 2
    assert lines[losses[0] - 1].startswith("bob is killed")
    assert lines[losses[1] - 1].startswith("cleo's lease has run out")


@pytest.mark.parametrize(
    ("part", "least", "most"), [(1, 0, 0.3), (3, 0, 0.3), (5, 0, 0.3), (6, 0, 0.3)]
)
def test_keys_that_are_handed_over_wait_for_a_moment(
    recording: Recording, part: int, least: float, most: float
) -> None:
    assert least <= dark_seconds(recording, part) <= most


def test_the_keys_of_the_dead_wait_less_than_those_of_who_is_cut_off(recording: Recording) -> None:
    killed = dark_seconds(recording, 2)
    assert f"{killed:.0f} s" in PAGE.read_text("utf-8")
    cut = [frame for frame in during(recording, 4) if CLEO in frame.held]
    begun, ended = cut[0].at, cut[-1].at
    assert ended - begun <= DEFAULT.term_ns / 1e9 + 0.1
    assert dark_seconds(recording, 4) >= (DEFAULT.hold_ns - DEFAULT.term_ns) / 1e9


def test_who_left_has_nothing_and_everybody_else_has_something(recording: Recording) -> None:
    last = recording.frames[-1]
    assert set(last.held) == {BOB, CLEO, DAN}
    assert last.asked == last.held
    assert len(OWNERS) == len(last.states)


def test_the_command_prints_it(recording: Recording, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["record"]) == 0
    assert msgspec.json.decode(capsys.readouterr().out, type=Recording) == recording
