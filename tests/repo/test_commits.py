"""The subject of a commit begins with a verb that says what it does, and has one fact.

Checked from a fixed commit on. A clone that does not go back so far has fewer to check, and what is
no clone at all, such as an unpacked sdist, has none.
"""

import re
import subprocess

import pytest

from tests.repo.reading import ROOT, report

SINCE = "66c680571fc01e4d395af1c6e7d5dcdc58312eb1"
LONGEST = 72
NO_VERB = re.compile(
    "(?:"
    "a|after|all|also|an|and|any|as|at|before|both|but|by|each|every|for|from|how|if|in|"
    "it|its|more|most|never|new|no|nobody|not|nothing|now|of|on|one|only|or|other|our|"
    "several|since|some|such|than|that|the|their|there|these|they|this|those|to|two|"
    "until|what|when|where|whether|which|while|who|whoever|why|with|without"
    ")"
)
ENDINGS = re.compile(r"(?<!s)s$|(?<!e)ed$|ing$")
"""Plurals and forms of verbs that are no commands. `Pass`, `Need` and `Bring` are."""
COMMANDS = {"address", "bring", "embed", "focus", "ping", "shed", "string", "bias", "canvas"}


def complaints(subject: str) -> list[str]:
    """What is wrong with the subject of a commit."""
    first, found = subject.partition(" ")[0], []
    if len(subject) > LONGEST:
        found.append(f"{len(subject)} characters, {LONGEST} at most")
    word = first.lower()
    if (
        NO_VERB.fullmatch(word)
        or (ENDINGS.search(word) and word not in COMMANDS)
        or not first.istitle()
    ):
        found.append(f"{first!r} is not a verb that says what the commit does")
    if " and " in subject or ";" in subject:
        found.append("two facts: make it two commits, or say what they have in common")
    return [f"{subject}: {each}" for each in found]


def git(*arguments: str) -> str | None:
    """What git says; None if this is no clone, or does not know what it is asked about."""
    command = ["git", "-C", str(ROOT), *arguments]
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None


def subjects() -> list[str]:
    """The subjects of the commits since that one which are known here; merges have none."""
    is_there = git("merge-base", "--is-ancestor", SINCE, "HEAD") is not None
    since = f"{SINCE}..HEAD" if is_there else "--max-count=1"
    listing = git("log", "--no-merges", "--format=%s", since)
    return (listing or "").splitlines()


def test_commits_say_what_they_do() -> None:
    found = [line for each in subjects() for line in complaints(each)]
    assert found == [], report(found)


@pytest.mark.parametrize(
    "subject",
    [
        "Names fill a page",
        "A renewal without a number gives an owner nothing",
        "Bound the labels of a join, and mend its docs",
        "Bound the labels of a join; mend its docs",
        "Mended the labels of a join",
        "Bounding the labels of a join",
        "bound the labels of a join",
        f"Bound {'the labels ' * 8}",
    ],
)
def test_a_subject_that_says_less_or_more_is_found(subject: str) -> None:
    assert complaints(subject)


@pytest.mark.parametrize(
    "subject",
    [
        "Bound the labels of a join at decoding",
        "Pass the deadline of a request on",
        "Feed a topic from a table",
        "Bring back what was lost",
    ],
)
def test_a_subject_with_one_command_is_let_through(subject: str) -> None:
    assert complaints(subject) == []
