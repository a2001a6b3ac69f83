"""All that was seen of one document, and the rules that it must obey.

Every update raises the version, and no version comes again for other contents. So versions say in
which order updates were made, and everything that was answered has to agree with that order: a
reader that asks when a version is known sees that one or a later one (the document is
linearizable), a conditional update directly follows the version that it names, and each section is
what its last update says.

A document whose state is lost is absent, or begins anew with a later version.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from lab.worlds.entity.history import Lost
from tenure.sim.kernel.checkers import Violation

ABSENT = ""
SECTIONS = "a", "b", "c"


class DocumentChange(NamedTuple):
    """The changes of an update. Each value is written by one update only."""

    values: Mapping[str, str | None]
    """The value of each section; None if it is taken away."""
    is_whole: bool
    """Whether the document has these sections only."""


class AskedAt(NamedTuple):
    """The time of a request, and the version that was known then."""

    at: int
    newest: str
    newest_asked_at: int


class VersionPlace(NamedTuple):
    """The place of a version among those of one journal."""

    number: int
    made: int


@lru_cache(maxsize=4096)
def journal_and_place(version: str) -> tuple[str, VersionPlace]:
    """A version, as it is documented: lease number, count, journal."""
    number, made, journal = version.split(".")
    return journal, VersionPlace(int(number), int(made))


def _life(version: str) -> tuple[str, int]:
    """The life of the document in a version: it begins with a lease number."""
    journal, place = journal_and_place(version)
    return journal, place.number


class DocumentHistory:
    """The history of one key."""

    def __init__(self, key: str, *, is_durable: bool) -> None:
        self.key = key
        self._is_durable = is_durable
        self._newest = ABSENT
        self._newest_asked_at = 0
        self._changes: list[DocumentChange] = []
        self._refused: set[int] = set()
        """The numbers of the updates that were not made."""
        self._tried_again: set[int] = set()
        self._made: dict[str, int] = {}
        """The change that made each version."""
        self._follows: dict[str, str] = {}
        """The version that an update of that version depended on."""
        self._seen: dict[str, dict[str, str]] = {}
        """The sections of a version."""
        self._later: set[tuple[str, str]] = set()
        """The pairs of journals of which the second is the later."""
        self.losses: list[Lost] = []

    def tried_again(self, number: int) -> None:
        """Try an update again that may have been made: where it was made, and lost with the
        document, it is made twice.
        """
        self._tried_again.add(number)

    def ask(self, now: int) -> AskedAt:
        """Something is asked now."""
        return AskedAt(now, self._newest, self._newest_asked_at)

    def begin(self, change: DocumentChange) -> int:
        """An update is tried. Its number."""
        self._changes.append(change)
        return len(self._changes) - 1

    def not_made(self, number: int) -> None:
        """The update was refused the first time it was tried."""
        self._refused.add(number)

    # --- answers ---

    def read(self, asked: AskedAt, version: str, sections: dict[str, str]) -> None:
        """This is there. Raises Violation."""
        self._see(asked, version)
        there = self._seen.setdefault(version, sections)
        if there != sections:
            raise self._wrong(f"{version} is both {there} and {sections}")

    def absent(self, asked: AskedAt, now: int) -> None:
        """Check an answer that nothing is there: if nobody deletes and nothing expires, it was
        lost. Raises Violation.
        """
        if asked.newest:
            self._lose(asked, f"is absent, and {asked.newest} was known", now)

    def refused(self, asked: AskedAt, condition: str, there: str, number: int, now: int) -> None:
        """An update was refused the first time it was tried, because this is there. Raises
        Violation.

        It was not made, if the document has lived since: the call carries an id. Otherwise a first
        try may have been made and lost with the document, and what was refused is its repetition.
        """
        if there and asked.newest and _life(there) == _life(asked.newest):
            self.not_made(number)
        if there:
            self._see(asked, there)
        else:
            self.absent(asked, now)
        if there == condition:
            raise self._wrong(f"{there or 'nothing'} is there, as it was wanted, and is refused")

    def written(
        self, asked: AskedAt, condition: str | None, number: int, version: str, now: int
    ) -> None:
        """An update was made that depended on a version, on absence, or on nothing (None). Raises
        Violation.
        """
        if version == asked.newest:
            raise self._wrong(f"an update leaves the version {version}")
        if asked.newest and _life(version) != _life(asked.newest):
            self.tried_again(number)  # by the client: routing repeats what was not answered
        if condition == ABSENT and asked.newest:
            self._lose(asked, f"begins with {version}, and {asked.newest} was known", now)
        self._see(asked, version)
        if self._made.setdefault(version, number) != number:
            raise self._wrong(f"two updates made {version}")
        if condition:
            self._follow(version, condition)

    # --- the order of versions ---

    def _see(self, asked: AskedAt, version: str) -> None:
        """A reader that asked then sees this version now."""
        if asked.newest and self._is_later(asked.newest, version):
            raise self._wrong(f"{version} is seen by who asked when {asked.newest} was known")
        for made, before in self._follows.items():
            if self._is_later(version, before) and self._is_later(made, version):
                raise self._wrong(f"{version} comes between {before} and {made}, which follows it")
        journal = journal_and_place(version)[0]
        if asked.newest and (before := journal_and_place(asked.newest)[0]) != journal:
            self._later.add((before, journal))
        if not self._newest or self._is_later(version, self._newest):
            self._newest, self._newest_asked_at = version, asked.at

    def _follow(self, version: str, before: str) -> None:
        known = dict.fromkeys((*self._seen, *self._made, *self._follows.values()))
        between = [
            each for each in known if self._is_later(each, before) and self._is_later(version, each)
        ]
        if between or before == version or self._is_later(before, version):
            raise self._wrong(f"{version} follows {before}, and not {between or 'later'}")
        other = next((each for each, it in self._follows.items() if it == before), version)
        if other != version:
            raise self._wrong(f"both {other} and {version} follow {before}")
        self._follows[version] = before

    def _is_later(self, one: str, other: str) -> bool:
        """Whether it is known that `one` is the later."""
        journal, place = journal_and_place(one)
        its_journal, its_place = journal_and_place(other)
        if journal != its_journal:
            return (its_journal, journal) in self._later
        return place > its_place

    def _lose(self, asked: AskedAt, how: str, now: int) -> None:
        """Forget what was known when the update was asked. What others have written since need not
        be lost.
        """
        if self._is_durable:
            raise Violation("what is stored is kept", f"{self.key} {how}")
        self.losses.append(Lost(self.key, asked.newest_asked_at, now))

    # --- sections ---

    def check_sections(self) -> None:
        """When everything is answered: each section is what the last update of it says, or what an
        update says of which nobody has heard the answer. Raises Violation.
        """
        versions = sorted({*self._seen, *self._made})
        for journal in dict.fromkeys(journal_and_place(each)[0] for each in versions):
            those = [each for each in versions if journal_and_place(each)[0] == journal]
            self._check_one_by_one(sorted(those, key=lambda each: journal_and_place(each)[1]))

    def _check_one_by_one(self, versions: list[str]) -> None:
        expected: dict[str, str | None] = {}
        heard = {*self._made.values()} - self._tried_again
        for version in versions:
            number = self._made.get(version)
            if number is not None:
                change = self._changes[number]
                kept = {} if not change.is_whole else dict.fromkeys(SECTIONS)
                expected = {**expected, **kept, **change.values}
            if version in self._seen:
                seen: dict[str, str | None] = {
                    each: self._seen[version].get(each) for each in SECTIONS
                }
                odd = [each for each in SECTIONS if seen[each] != expected.get(each, seen[each])]
                heard |= self._explained(version, seen, odd, heard)
                expected = seen

    def _explained(
        self, version: str, seen: dict[str, str | None], odd: list[str], heard: set[int]
    ) -> set[int]:
        """The updates that nobody had heard of until this version showed them."""
        found = set()
        for section in odd:
            makers = {
                number
                for number in self._changes_to(section, seen[section])
                if number not in heard and number not in self._refused
            }
            if not makers:
                raise self._wrong(f"{section} is {seen[section]} at {version}, and nobody says so")
            found |= makers if seen[section] is not None else set()
        return found

    def _changes_to(self, section: str, value: str | None) -> Iterator[int]:
        for number, change in enumerate(self._changes):
            touches = change.is_whole or section in change.values
            if touches and change.values.get(section) == value:
                yield number

    def _wrong(self, what: str) -> Violation:
        return Violation("documents", f"{self.key}: {what}")
