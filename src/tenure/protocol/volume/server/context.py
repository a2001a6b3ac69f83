"""The context of a server's parts: its records, and the only way to send something."""

from random import Random

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.keys import Key
from tenure.base.noted import Noted
from tenure.protocol.volume.limits import KNOWN_WRITES, OBJECT_LEASES
from tenure.protocol.volume.messages import Numbered, Reconnect, RefusedWhy, RequestRefused, ToCache
from tenure.protocol.volume.noted import VolumeServerKind
from tenure.protocol.volume.server.drains import Drains
from tenure.protocol.volume.server.epochs import Opening
from tenure.protocol.volume.server.events import NO_BOUND, ServerAction, ServerConfig, TellCache
from tenure.protocol.volume.server.loads import LoadsUnderWay
from tenure.protocol.volume.server.readers import Readers, label_of
from tenure.protocol.volume.server.served_ranges import ServedRanges
from tenure.protocol.volume.server.versions import NOTHING, Version, Versions
from tenure.protocol.volume.server.writes import Writes


class VolumeContext:
    """A server's records, and the actions that it wants carried out."""

    def __init__(self, config: ServerConfig, random: Random) -> None:
        self.config = config
        self.random = random
        self.opening = Opening(config, random)
        self.readers = Readers(config.terms, random, config.most_leases or OBJECT_LEASES)
        self.writes = Writes()
        self.drains = Drains()
        self.versions = Versions(config.known_writes or KNOWN_WRITES)
        self.loads = LoadsUnderWay()
        self.served = ServedRanges(is_strong=config.terms.is_strong)
        self.epoch = 0
        """The epoch; 0 while nothing is served and nobody is on record."""
        self.history = 0
        self.term_until = FAR_FUTURE if config.alone else Instant(0)
        """The end of the owner's term; without owners there is none."""
        self.longest_ns = NO_BOUND
        """The longest volume lease that the owner's manager allows."""
        self.is_stopping = False
        self._actions: list[ServerAction] = []
        self._last_wait = self._last_item = 0
        self._to_look_at: dict[int, None] = {}

    @property
    def is_closed(self) -> bool:
        """Whether no reader is put on record, and nothing is written."""
        return self.epoch == 0 or self.is_stopping

    # --- writes and drains ---

    def next_wait(self) -> int:
        """A number for a write or a drain."""
        self._last_wait += 1
        return self._last_wait

    def next_item(self) -> int:
        """A number for an item. All readers get the same one, so that it is encoded once."""
        self._last_item += 1
        return self._last_item

    def look_at(self, wait: int) -> None:
        """Look at this write or drain again once the present event is taken: it may be able to go
        on.
        """
        self._to_look_at[wait] = None

    def take_to_look_at(self) -> list[int]:
        """The writes and drains to look at again; afterwards there are none."""
        found, self._to_look_at = list(self._to_look_at), {}
        return found

    # --- what is known ---

    def version_of(self, key: Key) -> Version:
        """The version as of which an object that is given now is current."""
        serving = self.served[key]
        return NOTHING if serving is None else (serving.number, self.versions.count)

    # --- what is said ---

    def tell(self, client: int, message: ToCache) -> None:
        """Send a message."""
        self.act(TellCache(client, message))

    def refuse(
        self, message: Reconnect | Numbered, why: RefusedWhy, detail: str = "", again_ns: int = 0
    ) -> None:
        """Send a refusal, with its reason."""
        if why == "too many":
            self.note(VolumeServerKind.TOO_MANY, label_of(message.client))
        refused = RequestRefused(
            client=message.client,
            sequence=message.sequence,
            why=why,
            detail=detail,
            again_ns=again_ns or self.config.terms.term_ns,
        )
        self.tell(message.client, refused)

    def note(self, kind: VolumeServerKind, detail: str = "") -> None:
        """Note something."""
        self.act(Noted(kind, "", detail))

    def act(self, action: ServerAction) -> None:
        """Have an action carried out."""
        self._actions.append(action)

    def take_actions(self) -> list[ServerAction]:
        """The actions to carry out, in order."""
        actions, self._actions = self._actions, []
        return actions
