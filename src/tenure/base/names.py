"""Names of pools and owners: one rule, for those who send a name and those who receive one.

Names stand in URLs, logs, terminals and the journal, so every character of one can be seen:
`str.isprintable`. That also leaves out the surrogates, which no encoding has.
"""

import re
from reprlib import Repr

NAME_CHARACTERS = 200
SHOWN_CHARACTERS = 40
"""The most characters of a refused value that are shown; the value may be a document."""

_UNSAYABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_SHORT = Repr()
_SHORT.maxother = 2 * SHOWN_CHARACTERS


def shown(value: object) -> str:
    """`value` as an error shows it, however large it is."""
    if isinstance(value, str | bytes):
        return repr(value[:SHOWN_CHARACTERS])
    return _SHORT.repr(value)


def error_said(error: BaseException) -> str:
    """What an application's error says, in text that can be sent; some cannot say anything."""
    try:
        said = str(error)
    except Exception:  # noqa: BLE001  # whatever the application wrote there
        said = "it cannot be shown"
    return said.encode(errors="backslashreplace").decode()


def error_shown(error: BaseException) -> str:
    """An application's error, with its class, in text that can be sent."""
    return f"{type(error).__name__}: {error_said(error)}"


def wrong_with_name(name: object) -> str | None:
    """The reason why `name` cannot be a name, and what to do; None if it can."""
    if not isinstance(name, str):
        return f"it is a {type(name).__name__}; pass a str"
    if not 1 <= len(name) <= NAME_CHARACTERS:
        return f"it has {len(name)} characters; choose a name of 1 to {NAME_CHARACTERS}"
    for character in name:
        if not character.isprintable():
            return f"{character!r} in it is not printable; choose a name without it"
    return None


def wrong_with_text(text: str) -> str | None:
    """The reason why `text` cannot be sent to others and shown, and what to do; None if it can."""
    found = _UNSAYABLE.search(text)
    if found is None:
        return None
    return f"{found.group()!r} in it is a control character or half a character; leave it out"
