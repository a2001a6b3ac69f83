"""The demo of Live Mesh reports what its devices are told."""

import pytest

from lab.demo.mesh.mesh_devices import told_by
from tenure.services.queues.client import ReceivedEntry
from tenure.services.queues.entries import QueueLoss


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        (ReceivedEntry(1, 0.0, message={"data": {"address": "10.0.0.1"}}), ""),
        (ReceivedEntry(1, 0.0, message={"missed": [1, 4]}), "messages of the topic were dropped"),
        (
            ReceivedEntry(1, 0.0, loss=QueueLoss(began=True)),
            "its queue begins anew, and what an earlier one had is gone",
        ),
        (
            ReceivedEntry(
                1, 0.0, loss=QueueLoss(dropped=3, pools={"devices": ("a", "b"), "topics": ("a",)})
            ),
            (
                "its queue was full, and 3 entries were dropped; "
                "what 'devices' kept of a, b is lost; what 'topics' kept of a is lost"
            ),
        ),
    ],
)
def test_a_device_is_told_in_words_what_it_may_have_missed(entry: ReceivedEntry, told: str) -> None:
    assert told_by(entry) == told
