"""Entities with one rule left out, which the checkers must catch."""

from dataclasses import dataclass

import msgspec

from tenure.entities.alarms import Alarms
from tenure.entities.caller import Caller
from tenure.entities.edge import Edge
from tenure.entities.entity_turn import EntityTurn
from tenure.entities.gate import EntityGate
from tenure.entities.live_entity import LiveEntity
from tenure.fencing.fenced_rows import FencedRows
from tenure.protocol.entity.envelope import Envelope, SocketEntry
from tenure.protocol.entity.key_line import KeyLine
from tenure.protocol.entity.socket_end import SocketEnd
from tenure.runtime.agenda import Agenda
from tenure.sim.entity import breaks
from tenure.sim.entity.trial import EntityTrial
from tenure.sim.kernel.canaries import RuleLeftOut, called


@dataclass(frozen=True)
class EntityCanary(RuleLeftOut):
    """A rule of entities left out."""

    mix: tuple[str, ...] | None = None
    """The faults while it is hunted, if all together hardly ever show it; then there is a store,
    and users call often.
    """

    def trial(self, trial: EntityTrial) -> EntityTrial:
        """The trial to simulate."""
        if self.mix is None:
            return trial
        return msgspec.structs.replace(trial, faults=self.mix, stored=True, calls_apart=0.02)


NONE = EntityCanary("none")
CANARIES = (
    EntityCanary("no-turns", "one call at a time", ((KeyLine, "ask", breaks.at_once),)),
    EntityCanary(
        "no-answers",
        "a repeat gets the first answer",
        ((Envelope, "answer_to", breaks.nothing),),
    ),
    EntityCanary(
        "new-id-each-time",
        "all attempts of a call have one id",
        ((Caller, "_attempt", breaks.under_a_new_id),),
    ),
    EntityCanary(
        "nothing-rolled-back",
        "a call that raised is taken back",
        ((EntityTurn, "roll_back", breaks.nothing),),
    ),
    EntityCanary(
        "never-a-repeat",
        "a call that was cut after a commit is told so",
        ((EntityTurn, "is_repeat", property(breaks.never)),),
    ),
    EntityCanary(
        "moved-state-dropped",
        "what was handed over counts",
        ((Envelope, "counts", breaks.never),),
    ),
    EntityCanary(
        "not-in-reach",
        "what is kept is where a hand-off takes it from",
        ((EntityGate, "_put", breaks.not_for_the_hand_off),),
    ),
    EntityCanary(
        "old-instance",
        "an instance is of one lease",
        ((LiveEntity, "is_active", breaks.of_any_lease),),
    ),
    EntityCanary(
        "frames-before-commit",
        "frames wait until what they are about is kept",
        ((EntityTurn, "send", breaks.sent_at_once),),
    ),
    EntityCanary(
        "readings-of-turns",
        "a reading sees what is committed",
        ((EntityTurn, "state", property(breaks.uncommitted, EntityTurn.assign)),),
    ),
    EntityCanary(
        "frames-taken-again",
        "each frame is taken once",
        ((SocketEnd, "take", breaks.taken_again),),
    ),
    EntityCanary(
        "over-gaps", "a missing frame is asked for", ((SocketEnd, "take", breaks.over_gaps),)
    ),
    EntityCanary(
        "continued-silently",
        "where it is not known what follows, the socket is closed",
        ((SocketEntry, "after", breaks.nothing_follows),),
    ),
    EntityCanary(
        "never-asked", "an edge asks for what follows", ((Edge, "_ask", breaks.nothing_async),)
    ),
    EntityCanary(
        "early-alarms",
        "no alarm rings before its time",
        ((Agenda, "arm", breaks.armed_early), (Envelope, "due_alarm", breaks.due_early)),
    ),
    EntityCanary(
        "alarms-left-behind",
        "the next owner rings what is set",
        ((Alarms, "on_grant", breaks.nothing_async),),
    ),
    EntityCanary(
        "time-goes-back", "now() never goes back", ((EntityTurn, "now", breaks.wall_time),)
    ),
    EntityCanary(
        "answered-before-stored",
        "what is answered is stored",
        ((EntityGate, "_save", breaks.nothing_async),),
    ),
    EntityCanary(
        "unfenced-store",
        "the store refuses an older lease",
        ((FencedRows, "save_row", breaks.saved_unfenced),),
        mix=("pause past the term", "store slow", "store late"),
    ),
    EntityCanary(
        "late-store",
        "what a store does late changes nothing",
        ((FencedRows, "save_row", breaks.saved_over_any),),
        mix=("store late",),
    ),
)


def entity_canary(name: str) -> EntityCanary:
    """The canary of that name. Raises ConfigurationError, which lists them all."""
    return NONE if name == NONE.name else called(name, CANARIES)
