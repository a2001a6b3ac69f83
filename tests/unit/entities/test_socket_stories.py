import pytest

from lab.mutants.catalogue import mutant
from lab.mutants.running import run_without
from tests.unit.entities.socket_stories import STORIES


@pytest.mark.parametrize("name", STORIES)
def test_a_rule_of_sockets_left_out_is_caught(name: str) -> None:
    STORIES[name]()
    with pytest.raises(AssertionError, match="of another time"):
        run_without(mutant("entity", name), STORIES[name])
