"""What the parts of a client share: its servers, what is under way, and what is to be done."""

from random import Random

from tenure.base.keys import Key
from tenure.base.noted import Noted
from tenure.base.rangemap import RangeMap
from tenure.protocol.volume.client.contacts import Contact
from tenure.protocol.volume.client.events import CacheAction, CacheConfig, TellServer
from tenure.protocol.volume.client.fetches import NOTHING_IS_KEPT, Fetches
from tenure.protocol.volume.limits import NONCE_LIMIT
from tenure.protocol.volume.messages import Item, ToVolumeServer
from tenure.protocol.volume.noted import CacheKind


class ClientContext:
    """A client's contacts, its fetches and writes under way, and the actions that it wants carried
    out.
    """

    def __init__(self, config: CacheConfig, random: Random) -> None:
        self.config = config
        self.random = random
        self.routes: RangeMap[str | None] = RangeMap(config.server or None)
        self.contacts: dict[str, Contact] = {}
        self.fetches = Fetches()
        self._actions: list[CacheAction] = []

    def contact(self, server: str) -> Contact:
        """The contact with a server."""
        found = self.contacts.get(server)
        if found is None:
            found = self.contacts[server] = Contact(server, self.random.randrange(1, NONCE_LIMIT))
        return found

    def is_waited_for(self, contact: Contact) -> bool:
        """Whether a read or a write waits until this server has put the client on record."""
        return any(
            each.asking is None and self.routes[each.key] == contact.server
            for each in self.fetches.under_way()
        )

    # --- marks (V7) ---

    def raise_marks(self, contact: Contact, item: Item) -> None:
        """Raise the marks, so that an answer that the server gave before the item is
        not kept (V7).
        """
        self.fetches.apply(item)
        contact.apply(item)

    def void_answers(self, key: Key) -> None:
        """Raise all marks of a key so high that no answer under way is kept."""
        self.fetches.raise_to(key, NOTHING_IS_KEPT)
        for contact in self.contacts.values():
            for asking in contact.asked():
                asking.marks.raise_to(key, NOTHING_IS_KEPT)

    # --- what is to be done ---

    def tell(self, contact: Contact, message: ToVolumeServer) -> None:
        """Send a message."""
        self.act(TellServer(contact.server, message))

    def note(self, kind: CacheKind, detail: str = "") -> None:
        """Note something."""
        self.act(Noted(kind, "", detail))

    def act(self, action: CacheAction) -> None:
        """Have an action carried out."""
        self._actions.append(action)

    def take_actions(self) -> list[CacheAction]:
        """The actions to carry out, in order."""
        actions, self._actions = self._actions, []
        return actions
