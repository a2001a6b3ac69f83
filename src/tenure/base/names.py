"""Names of pools and owners: one rule, for those who send a name and those who receive one.

Names stand in URLs, logs, terminals and the journal, so every character of one can be seen:
`str.isprintable`. That also leaves out the surrogates, which no encoding has.
"""

import re
from reprlib import Repr

NAME_CHARACTERS = 200
SHOWN_CHARACTERS = 40
"""The most characters of a refused value that are shown; the value may be a document."""
SHOWN_URL_CHARACTERS = 200
HIDDEN = "..."
"""What stands where a password may have been."""

_UNSAYABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|(cassandra|columns|etcd|postgresql):")
_QUERY_VALUE = re.compile("=[^&]*")
_SHORT = Repr()
_SHORT.maxother = 2 * SHOWN_CHARACTERS


def shown(value: object) -> str:
    """`value` as an error shows it, however large it is."""
    if isinstance(value, str | bytes):
        return repr(value[:SHOWN_CHARACTERS])
    return _SHORT.repr(value)


def shown_url(url: object) -> str:
    """`url` as an error shows it: without what precedes an @, and without the values of its query,
    as each may be a password, or a part of one that its user has not encoded.
    """
    if not isinstance(url, str):
        return shown(url)
    before, at, place = url.rpartition("@")
    if at:
        scheme = _SCHEME.match(before)
        # A password may stand in a query, with an @ of its own: then no place is known.
        place = HIDDEN if "?" in before else place
        place = f"{scheme.group() if scheme else ''}{HIDDEN}@{place}"
    path, mark, query = place.partition("?")
    text = path + mark + _QUERY_VALUE.sub(f"={HIDDEN}", query)
    return repr(text[:SHOWN_URL_CHARACTERS])


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
