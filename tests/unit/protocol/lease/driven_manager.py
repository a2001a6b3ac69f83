"""A manager machine and its journal, which answers when it is let."""

from collections import deque
from random import Random

from tenure.base.instants import Instant, seconds
from tenure.base.machine import Output
from tenure.base.noted import Noted
from tenure.protocol.balance.planning import Planning
from tenure.protocol.lease.answers import Answer
from tenure.protocol.lease.leader.events import (
    AnswerQuestion,
    ClientSaid,
    GiveUp,
    MakePlan,
    ManagerAction,
    ManagerEvent,
    PlanMade,
    Question,
    QuestionAsked,
    TellClient,
    TellClients,
    TellNodes,
)
from tenure.protocol.lease.leader.manager import Manager, ManagerConfig, told_of_failure
from tenure.protocol.lease.leader.policies import PolicyMaker, chosen_policy
from tenure.protocol.lease.messages import FromManager, Join, ToManager
from tenure.protocol.lease.records import JournalAction
from tenure.protocol.lease.timing import DEFAULT
from tenure.protocol.log.journal import LOG_ACTIONS, Append, Beat, Compact, Load, ReadSeat, Resign
from tenure.sim.journal import LeaseContents, waited_out

T0 = Instant(0)
CLIENT = 5


def at(value: float) -> Instant:
    return Instant(seconds(value))


class Driven:
    """A manager and its journal, which answers at once except what is held back."""

    def __init__(
        self,
        *,
        journal: LeaseContents | None = None,
        held: tuple[type, ...] = (),
        make_policy: PolicyMaker = chosen_policy,
        seed: int = 2,
        **config: object,
    ) -> None:
        self.journal = journal or waited_out(Random(1))
        made = ManagerConfig(**({"url": "m", "timing": DEFAULT} | config))  # type: ignore[arg-type]
        self.machine = Manager(made, Random(seed), make_policy)
        self.held = held
        self.waiting: deque[JournalAction] = deque()
        self.calls: list[JournalAction] = []
        self.said: list[FromManager] = []
        self.notes: list[str] = []
        self.replies: list[Answer] = []
        self.asked: deque[Planning] = deque()
        """The questions for policies that run beside the machine."""
        self.gave_up = False
        self.starts_over = False
        """Whether a step that fails costs the leadership, and not the test."""
        self.now = self.wake_at = T0
        self.run(T0)

    def take(self, event: ManagerEvent | None = None) -> None:
        step = self.machine.advance(self.now) if event is None else self._handled(event)
        self.machine.invariants()
        self.wake_at = step.wake_at
        for action in step.actions:
            self._perform(action)

    def _handled(self, event: ManagerEvent) -> Output[ManagerAction]:
        """Handle an event as the engine does."""
        try:
            return self.machine.handle(self.now, event)
        except Exception as error:
            instead = told_of_failure(event, error) if self.starts_over else None
            if instead is None:
                raise
            return self.machine.handle(self.now, instead)

    def _perform(self, action: ManagerAction) -> None:
        match action:
            case TellClient(message=message) | TellClients(message=message):
                self.said.append(message)
            case TellNodes():
                pass
            case Noted(kind=kind):
                self.notes.append(kind.phrase)
            case AnswerQuestion(answer=answer):
                self.replies.append(answer)
            case MakePlan():
                self.asked.append(action.work)
            case GiveUp():
                self.gave_up = True
            case ReadSeat() | Load() | Append() | Beat() | Resign() | Compact():
                self._call(action)
            case _:
                assert isinstance(action, LOG_ACTIONS), action
                self._call(action)

    def _call(self, action: JournalAction) -> None:
        self.calls.append(action)
        if isinstance(action, self.held):
            self.waiting.append(action)
        else:
            event = self.journal.carry_out(action)
            if event is not None:
                self.take(event)

    def answer_first(self) -> None:
        """The journal does the first of what was held back; more may be held back then."""
        event = self.journal.carry_out(self.waiting.popleft())
        if event is not None:
            self.take(event)

    def release(self) -> None:
        """The journal does what was held back."""
        self.held = ()
        while self.waiting:
            event = self.journal.carry_out(self.waiting.popleft())
            if event is not None:
                self.take(event)

    def plan(self) -> None:
        """Answer the questions that policies were asked."""
        while self.asked:
            work = self.asked.popleft()
            self.take(PlanMade(work, work.carry_out()))

    def run(self, until: Instant) -> None:
        """Wake it as it wishes."""
        woken = 0
        while self.wake_at <= until:
            self.now, woken = max(self.now, self.wake_at), woken + 1
            self.take()
            assert woken < 2_000, f"woken {woken} times by {self.now} ns"
        self.now = until

    def hear(self, message: ToManager, connection: int = CLIENT) -> list[FromManager]:
        self.said = []
        self.take(ClientSaid(connection, message))
        return self.said

    def ask(self, question: Question) -> Answer:
        self.replies = []
        self.take(QuestionAsked(1, question))
        [answer] = self.replies
        return answer

    @property
    def nonce(self) -> int:
        assert self.machine.leader is not None
        return self.machine.leader.context.seal.nonce

    def join(self, name: str = "o", kind: str | None = "hashed", pool: str = "p") -> FromManager:
        message = Join(
            pool=pool,
            kind=kind,  # type: ignore[arg-type]
            name=name,
            address="http://o",
            owner_nonce=11,
            manager_nonce=self.nonce,
            sequence=1,
        )
        [answer] = self.hear(message)
        return answer
