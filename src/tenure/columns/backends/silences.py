"""Silent nodes: those that owe a handle an answer, and say nothing at all.

The connection to a process that is stopped, or behind a cut cable, looks well for seconds. A slow
answer says nothing of its node: the row may have too few replicas just now. So the node is asked
something that it can answer by itself. Two times pass, not one, so that a handle whose own loop
stood still first reads what has come meanwhile. Both are counted from when the node last said
something, or was asked, and not from when it was last looked at: a node falls silent between two
looks. It says something also while an answer comes that is not whole: 30 MiB may take seconds, and
the answer to a probe comes behind them.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

QUIET_SECONDS: Final = 0.5
"""After so long without a word, a node that owes an answer is probed."""
PROBED_SECONDS: Final = 0.5
"""How long it then has. Nodes answer a probe at once, from memory."""
SILENT_SECONDS: Final = QUIET_SECONDS + PROBED_SECONDS


class SilentNodes:
    """See above. `owes_since` says since when a node owes an answer; `probe` and `give_up` act on
    it.
    """

    def __init__(
        self,
        owes_since: Callable[[str], float | None],
        probe: Callable[[str], None],
        give_up: Callable[[str], None],
    ) -> None:
        self._owes_since = owes_since
        self._probe = probe
        self._give_up = give_up
        self._heard_at: dict[str, float] = {}
        self._looks: dict[str, asyncio.TimerHandle] = {}

    def on_asked(self, node: str) -> None:
        if node not in self._looks:
            self._look(node, asyncio.get_running_loop().time() + QUIET_SECONDS, self._on_quiet)

    def on_heard(self, node: str) -> None:
        self._heard_at[node] = asyncio.get_running_loop().time()

    def close(self) -> None:
        for look in self._looks.values():
            look.cancel()

    def _look(self, node: str, at: float, look: Callable[[str], None]) -> None:
        self._looks[node] = asyncio.get_running_loop().call_at(at, look, node)

    def _on_quiet(self, node: str) -> None:
        since, now = self._quiet_since(node), asyncio.get_running_loop().time()
        if since is None:
            return
        if now < since + QUIET_SECONDS:
            self._look(node, since + QUIET_SECONDS, self._on_quiet)
            return
        self._probe(node)
        self._look(node, now + PROBED_SECONDS, partial(self._on_probed, now))

    def _on_probed(self, probed_at: float, node: str) -> None:
        since = self._quiet_since(node)
        if since is None:
            return
        if self._heard_at.get(node, 0.0) >= probed_at:
            self._look(node, since + QUIET_SECONDS, self._on_quiet)
            return
        self._give_up(node)
        if self._owes_since(node) is not None:  # there is no other to be asked: it may come back
            self.on_asked(node)

    def _quiet_since(self, node: str) -> float | None:
        """Since when it says nothing; None if it owes nothing, and is watched no longer."""
        del self._looks[node]
        since = self._owes_since(node)
        return None if since is None else max(since, self._heard_at.get(node, since))
