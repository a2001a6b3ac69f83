"""What happens in the recording, and how it is written down.

The script kills, cuts and asks; what comes of it is only observed: who has which keys, whom the
client asks, and what the client is told. So the pictures show what the machines did.
"""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from lab.recording.world import MANAGER, NOBODY, OWNERS, SLICES, RecordedWorld
from tenure.base.instants import FAR_FUTURE, MILLISECOND_NS, SECOND_NS
from tenure.protocol.lease.owner.events import CloseRequested, DrainRequested

SEED = 2
"""All processes state who they are to their neighbours on the host in this one."""
CUT_OFF = "cut off"
LOOK_NS = 100 * MILLISECOND_NS
LONGEST_SECONDS = 60.0
"""A part that is not over by then is a fault."""


class Frame(msgspec.Struct, frozen=True):
    """One picture: each string has a sign for each part of the key space, or for each owner."""

    at: float
    held: str
    asked: str
    states: tuple[str, ...]


class Told(msgspec.Struct, frozen=True):
    """One line of the story."""

    at: float
    text: str


class Recording(msgspec.Struct, frozen=True):
    """All that a player needs."""

    owners: tuple[str, ...]
    seconds: float
    frames: tuple[Frame, ...]
    told: tuple[Told, ...]


class Part(NamedTuple):
    """One thing that the script does, and when its consequences are over."""

    text: str
    do: "Callable[[Recorder], None]"
    is_over: "Callable[[Recorder], bool]"


class Recorder:
    """Lets the world go on, and writes down what is seen of it."""

    def __init__(self) -> None:
        self.world = RecordedWorld(SEED)
        self.frames: list[Frame] = []
        self.told: list[Told] = []
        self.states = dict.fromkeys(OWNERS, "")

    @property
    def seconds(self) -> float:
        return round(self.world.now / SECOND_NS, 1)

    def say(self, text: str) -> None:
        self.told.append(Told(self.seconds, text))

    def look(self) -> None:
        """Go on for a moment. What has changed since is a new frame, and perhaps a line."""
        world = self.world
        world.run_until(world.now + LOOK_NS)
        seen = Frame(self.seconds, world.held(), world.asked(), tuple(self.states.values()))
        last = self.frames[-1] if self.frames else Frame(0.0, NOBODY * SLICES, "", ())
        if seen != msgspec.structs.replace(last, at=seen.at):
            self.frames.append(seen)
            self._say_whose_lease_ran_out(last.held, seen.held)
        if world.client_there.lost:
            self.say("The client is told which keys were lost, and publishes them again.")
            world.client_there.lost.clear()

    def _say_whose_lease_ran_out(self, before: str, now: str) -> None:
        for place, (slot, name) in enumerate(OWNERS.items()):
            if str(place) in before and str(place) not in now and self.states[slot] == CUT_OFF:
                self.say(
                    f"{name}'s lease has run out: {name} stops serving by its own clock. The "
                    "manager gives the keys to others a second later at the earliest, so no key "
                    "ever has two owners."
                )

    def is_calm(self) -> bool:
        """Whether every key has an owner, and the client knows which."""
        seen = self.frames[-1]
        return NOBODY not in seen.held and seen.held == seen.asked

    def play(self, part: Part) -> None:
        """Do it, and watch until it is over, and five seconds more."""
        self.say(part.text)
        part.do(self)
        begun = self.seconds
        while True:
            self.look()
            if self.is_calm() and part.is_over(self):
                break
            if self.seconds > begun + LONGEST_SECONDS:
                raise TimeoutError(f"this was not over after {LONGEST_SECONDS:.0f} s: {part.text}")
        for _ in range(5 * SECOND_NS // LOOK_NS):
            self.look()


def _begin(told: Recorder) -> None:
    told.states.update(dict.fromkeys(("o0", "o1", "o2"), "serves"))
    told.world.start_all()


def _come(slot: str) -> Callable[[Recorder], None]:
    def come(told: Recorder) -> None:
        told.states[slot] = "serves"
        told.world.put(told.world.make(slot))

    return come


def _kill(told: Recorder) -> None:
    told.states["o1"] = "killed"
    told.world.slots["o1"].kill()


def _cut(told: Recorder) -> None:
    told.states["o2"] = CUT_OFF
    cuts = told.world.network.cuts
    cuts["o2", MANAGER] = cuts[MANAGER, "o2"] = FAR_FUTURE


def _mend(told: Recorder) -> None:
    told.states["o2"] = "serves"
    told.world.network.cuts.clear()


def _leave(told: Recorder) -> None:
    told.states["o0"] = "leaves"
    told.world.slots["o0"].post(DrainRequested())


def _has(slot: str, *, keys: bool = True) -> Callable[[Recorder], bool]:
    sign = str(list(OWNERS).index(slot))
    return lambda told: (sign in told.frames[-1].held) is keys


SCRIPT = (
    Part("A manager, three owners and a client start.", _begin, _has("o0")),
    Part("dan joins. Others hand keys over to dan, with their state.", _come("o3"), _has("o3")),
    Part(
        "bob is killed. Its neighbours on the host see that the process is gone, so nobody has to "
        "wait for its lease to run out.",
        _kill,
        _has("o1", keys=False),
    ),
    Part("bob is started again, as a new process.", _come("o1"), _has("o1")),
    Part(
        "cleo is cut off from the manager. It still serves: its lease is still good, and nobody "
        "else is given its keys.",
        _cut,
        _has("o2", keys=False),
    ),
    Part("The cut is mended.", _mend, _has("o2")),
    Part(
        "ann is asked to leave, as in a deploy. It hands everything over.",
        _leave,
        _has("o0", keys=False),
    ),
)


def recorded() -> Recording:
    """Record the whole story. It is the same each time."""
    told = Recorder()
    for part in SCRIPT:
        told.play(part)
    told.world.slots["o0"].post(CloseRequested())
    told.states["o0"] = "gone"
    told.say("ann has gone. Nobody noticed.")
    told.look()
    return Recording(tuple(OWNERS.values()), told.seconds, tuple(told.frames), tuple(told.told))
