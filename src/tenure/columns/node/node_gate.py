"""Admits clients at a node's door that show a valid token, of a role for rows."""

import logging

from tenure.manager.access.tokens import TokenFile

_log = logging.getLogger("tenure.columns")


class NodeGate:
    def __init__(self, tokens: TokenFile) -> None:
        self._tokens = tokens

    def admits(self, shown: str) -> bool:
        permit = self._tokens.shown(shown)
        if permit is None or not permit.may_keep_rows:
            _log.info("a client was not let in: %s", permit or "it shows no token that counts")
            return False
        return True

    def may_look(self, shown: str) -> bool:
        permit = self._tokens.shown(shown)
        return permit is not None and (permit.may_keep_rows or permit.may_read(None))
