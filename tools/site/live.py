"""The recording of the simulator in the page that plays it.

It is made when the site is built, so it shows what this version does, and it is inside the page, so
that a site in a folder, which may fetch nothing, can play it.
"""

import msgspec

from lab.recording.story import Recording, recorded

MARK = "<!-- live -->"


def with_recording(text: str) -> str:
    """The text of a page, with the recording where it asks for one."""
    return text.replace(MARK, player(recorded())) if MARK in text else text


def player(recording: Recording) -> str:
    """What a page needs to play it, for a page in a folder beside `live/`."""
    story = msgspec.json.encode(recording).decode().replace("</", "<\\/")
    return (
        '<link rel="stylesheet" href="../live/live.css">\n'
        f'<div class="tenure-live"><script type="application/json">{story}</script></div>\n'
        '<script src="../live/live.js" defer></script>'
    )
