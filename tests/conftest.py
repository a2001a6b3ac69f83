"""The configuration that all tests share: how Hypothesis searches, how garbage is collected, and
checks that nothing stays open or taken.
"""

import gc
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

# An assertion of a helper says what it found, as one of a test does.
pytest.register_assert_rewrite(
    "tests.integration", "tests.unit", "tests.versions", "tests.patience"
)

from tests.sessions import OpenConnections  # noqa: E402 - what it imports is to be rewritten, too

# No deadline: we claim nothing about how long an example takes on a busy machine. In CI the
# examples are the same each time, so that a change is judged by itself, and a failure prints the
# blob that repeats it; at home they are drawn again each time, and find more.
settings.register_profile("home", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "home")

# A shell has what it starts in the background ignore SIGINT, and so would every process that tests
# start: Ctrl-C would end nothing.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A handler that a test leaves behind takes the signals that a later test raises.
UNTOUCHED = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

# What collects 8,000 tests makes millions of objects that all stay. Looking through them again and
# again takes half of that time, and a second of each later collection that looks at everything.
gc.disable()

connections = OpenConnections()
connections.watch()


def pytest_collection_finish() -> None:
    """From here on, only what tests make is looked through for garbage."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """A test that leaves a connection open fails, instead of the one in which it is collected."""
    result = yield
    left = connections.left()
    assert not left, f"nobody closed {', '.join(left)}"
    kept = {number: signal.getsignal(number) for number in UNTOUCHED}
    for number, handler in UNTOUCHED.items():
        signal.signal(number, handler)
    assert kept == UNTOUCHED, f"signals go to {kept}, and no longer to {UNTOUCHED}"
    return result
