"""The exhaustive search over the real machines of caches, as the paper had Murphi do (3.1.4)."""

import pytest

from lab.mutants.catalogue import mutant
from lab.mutants.running import run_without
from lab.worlds.volume.small import Scope, search_caches

WHOLE = (
    Scope(ticks=4, reads=1, writes=1, lose=1),
    Scope(ticks=3, reads=1, writes=1, double=1),
    Scope(ticks=4, reads=1, writes=1, crash=1, starts=1),
)


@pytest.mark.parametrize("scope", WHOLE, ids=str)
def test_no_story_within_the_scope_breaks_a_promise(scope: Scope) -> None:
    """No client can hit an object that is being written, and whatever is read is the current
    version.
    """
    found = search_caches(scope)
    print(found)
    assert found.violation is None, str(found)
    assert found.complete
    assert found.states > 10_000


FOUND_SOON = {
    "bare-lease": Scope(ticks=4, reads=1, writes=1, lose=1),
    "late-fills-kept": Scope(ticks=3, reads=1, writes=1, late=1),
    "starts-at-once": Scope(ticks=3, writes=1, crash=1, starts=1),
    "own-entry-outlives-the-write": Scope(ticks=2, own=1),
    "granted-during-a-write": Scope(ticks=2, reads=1, writes=1, late=1),
    "overtaken-load-kept": Scope(ticks=2, reads=1, writes=1, late=1),
    "forgotten-while-active": Scope(ticks=3, writes=1, lose=1),
    "half-the-wait": Scope(ticks=3, writes=1, lose=1),
    "nobody-waited-for": Scope(ticks=2, writes=1),
}


@pytest.mark.parametrize("name", FOUND_SOON)
def test_a_rule_left_out_is_found_and_its_shortest_story_told(name: str) -> None:
    scope = FOUND_SOON[name]
    found = run_without(mutant("cache", name), search_caches, scope, most_states=10_000)
    assert found.violation is not None
    assert found.story
