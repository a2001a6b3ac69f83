"""The mutants that there are, read from the files beside this one."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


@dataclass(frozen=True)
class Patch:
    """A change of one place in a file."""

    file: str
    """Its path from the root of the repository."""
    before: str
    """A text that the file has exactly once."""
    after: str

    def applied_to(self, text: str) -> str:
        """The text with the patch. Raises AssertionError if the place is not there exactly once."""
        found = text.count(self.before)
        assert found == 1, (
            f"{self.file} has {found} times, and not once:\n{self.before}\n"
            "Say it as the file does now, and with more lines around it if it must be told apart"
        )
        return text.replace(self.before, self.after)


@dataclass(frozen=True)
class Mutant:
    """The product with one rule left out."""

    tier: str
    name: str
    rule: str
    """The rule that is left out."""
    patches: tuple[Patch, ...]
    by: Literal["seeds", "schedule"]
    """What catches it: seeds of its tier, or a schedule because chance would take too long."""

    def texts(self) -> dict[str, str]:
        """The files that differ from the product's, by their paths from the root."""
        texts: dict[str, str] = {}
        for patch in self.patches:
            text = texts.get(patch.file) or (ROOT / patch.file).read_text()
            texts[patch.file] = patch.applied_to(text)
        return texts


@cache
def mutants(tier: str) -> dict[str, Mutant]:
    """The mutants of a tier, by name."""
    listed = tomllib.loads((HERE / f"{tier}.toml").read_text())["mutant"]
    found = {each["name"]: _mutant(tier, each) for each in listed}
    assert len(found) == len(listed), f"{tier}.toml gives one name to two mutants"
    return found


def mutant(tier: str, name: str) -> Mutant:
    """The mutant of that name. Raises KeyError, which lists those that there are."""
    there = mutants(tier)
    if name not in there:
        raise KeyError(f"no mutant of {tier} is called {name!r}; there are {', '.join(there)}")
    return there[name]


def tiers() -> tuple[str, ...]:
    """All tiers that have mutants."""
    return tuple(sorted(each.stem for each in HERE.glob("*.toml")))


def _mutant(tier: str, said: dict[str, Any]) -> Mutant:
    places = (said, *said.get("also", ()))
    return Mutant(
        tier=tier,
        name=said["name"],
        rule=said["rule"],
        patches=tuple(Patch(each["file"], each["before"], each["after"]) for each in places),
        by=said.get("by", "seeds"),
    )
