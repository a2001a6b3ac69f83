"""`python -m lab record`: the recording that the documents play, as JSON."""

import msgspec

from lab.recording.story import recorded
from tenure.cli.output import put


def record() -> int:
    """Record a run of the simulator for the documents, and print it as JSON."""
    put(msgspec.json.encode(recorded()).decode())
    return 0
