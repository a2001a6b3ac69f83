"""A toy protocol on the simulator's kernel: one side pings, the other answers. It has no lease."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tenure.base.instants import FAR_FUTURE, SECOND_NS, Instant
from tenure.base.machine import Output
from tenure.sim.kernel.checkers import InvariantChecker, Violation
from tenure.sim.kernel.faults import (
    LATE_TIMER,
    MESSAGE_FAULTS,
    POINT_FAULTS,
    SKEW,
    Fault,
    FaultDice,
    FaultTable,
    terms_apart,
)
from tenure.sim.kernel.network import Network
from tenure.sim.kernel.process import SimProcess
from tenure.sim.kernel.story import Story
from tenure.sim.kernel.strikes import (
    PAUSE_PAST_THE_TERM,
    SHORT_PAUSE,
    SUSPEND,
    WALL_CLOCKS,
    Strikes,
)
from tenure.sim.kernel.world import AnyTrial, World

PERIOD_NS = SECOND_NS


class Ping(NamedTuple):
    number: int


class Pong(NamedTuple):
    number: int


class Gone(NamedTuple):
    """A connection broke."""


class Send(NamedTuple):
    to: Any
    message: Ping | Pong


class Got(NamedTuple):
    sender: Any
    message: Ping | Pong


class Pinger:
    """Sends the next number once the last was answered, and the same one again after a period."""

    def __init__(self) -> None:
        self.sent = 1
        self.answered = 0
        self.ask_at = Instant(0)

    def advance(self, now: Instant) -> Output[Send]:
        actions = []
        if now >= self.ask_at:
            self.ask_at = Instant(now + PERIOD_NS)
            actions.append(Send("server", Ping(self.sent)))
        return Output(actions, self.ask_at)

    def handle(self, now: Instant, event: Got | Gone) -> Output[Send]:
        if isinstance(event, Got) and event.message.number == self.sent:
            self.answered, self.sent = self.sent, self.sent + 1
        return self.advance(now)

    def invariants(self) -> None:
        assert self.sent == self.answered + 1


class Ponger:
    def advance(self, now: Instant) -> Output[Send]:
        del now
        return Output([], FAR_FUTURE)

    def handle(self, now: Instant, event: Got | Gone) -> Output[Send]:
        del now
        if isinstance(event, Gone):
            return Output([], FAR_FUTURE)
        return Output([Send(event.sender, Pong(event.message.number))], FAR_FUTURE)

    def invariants(self) -> None:
        """It has no state."""


class ToyProcess(SimProcess):
    site: "ToyWorld"
    stops_before = (Send,)

    def perform(self, action: Send) -> None:
        if isinstance(action.to, str):
            self.site.network.to_address(self, action.to, action.message)
        else:
            self.site.network.to_process(self, action.to, action.message)

    def on_message(self, sender: SimProcess, message: Ping | Pong) -> None:
        if isinstance(message, Pong):
            self.site.on_pong(message.number)
        self.post(Got(sender, message))

    def on_disconnected(self, peer: tuple[str, int]) -> None:
        self.post(Gone())


class ToyCodec:
    def encode(self, message: Ping | Pong) -> bytes:
        return f"{type(message).__name__} {message.number}".encode()

    def decode(self, data: bytes, receiver: SimProcess) -> Ping | Pong:
        del receiver
        name, number = data.decode().split()
        return Ping(int(number)) if name == "Ping" else Pong(int(number))


class ToyStrikes(Strikes):
    site: "ToyWorld"

    def crash_of_a_server(self) -> None:
        self.crash([self.site.slots["server"]])

    def cut_between_them(self) -> None:
        self.cut("client", "server", both_ways=self.random.random() < 0.5)


TABLE = FaultTable(
    (
        Fault("crash of a server", terms_apart, ToyStrikes.crash_of_a_server),
        Fault("cut between them", terms_apart, ToyStrikes.cut_between_them),
        SHORT_PAUSE,
        PAUSE_PAST_THE_TERM,
        SUSPEND,
        WALL_CLOCKS,
        *MESSAGE_FAULTS,
        *POINT_FAULTS,
        LATE_TIMER,
        SKEW,
    )
)
NAMES = TABLE.kinds


class ToyWorld(World):
    """A client and a server; a process is well if it has answered something since all
    was healed.
    """

    def __init__(self, trial: AnyTrial) -> None:
        super().__init__(trial, TABLE, Story())
        self.heals_every_ns, self.phase_ns = PERIOD_NS, 10 * PERIOD_NS
        self.faults = FaultDice(self, self.mix, 10 * PERIOD_NS)
        self.network = Network(self, ToyCodec())
        self.strikes = ToyStrikes(self, self.network, self.clocks)
        self.checker = InvariantChecker()
        self.pongs: list[int] = []
        self.last_before_healing = 0

    @property
    def healing_bound_ns(self) -> int:
        return 10 * PERIOD_NS

    def first_slots(self) -> Iterable[str]:
        return ("server", "client")

    def seen_by_clients(self) -> dict[str, int]:
        return {"pongs": len(self.pongs)}

    def make(self, slot: str) -> SimProcess:
        clock = self.clock_of(slot, 40_000)
        return ToyProcess(self, slot, clock, Pinger() if slot == "client" else Ponger())

    def groups(self) -> Sequence[Sequence[SimProcess]]:
        return [[process] for process in self.processes()]

    def peers(self, process: SimProcess) -> Sequence[SimProcess]:
        return [each for each in self.processes() if each is not process]

    def on_step(self, process: SimProcess) -> None:
        self.checker.on_step(process)

    def on_pong(self, number: int) -> None:
        pinger = self.slots["client"].machine
        assert isinstance(pinger, Pinger)
        if number > pinger.sent:
            raise Violation("answers", f"{number} was never asked")
        self.pongs.append(self.now)

    def end_faults(self) -> None:
        super().end_faults()
        self.last_before_healing = self.now

    def not_well(self) -> str | None:
        heard = self.pongs and self.pongs[-1] > self.last_before_healing
        return None if heard else "the client has heard nothing"
