import pytest

from lab.mutants.catalogue import mutant
from lab.mutants.running import run_without
from tests.unit.entities.reading_stories import STORIES


@pytest.mark.parametrize("name", STORIES)
def test_a_rule_of_copies_left_out_is_caught(name: str) -> None:
    STORIES[name]()
    with pytest.raises(AssertionError):
        run_without(mutant("entity", name), STORIES[name])
