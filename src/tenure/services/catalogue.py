"""All services: each is loaded when it is asked for."""

from importlib import import_module
from typing import Any

from tenure.services.service import Service

PLACES = {
    "documents": "tenure.services.documents.service:Documents",
    "feeds": "tenure.services.feeds.service:Feeds",
    "pubsub": "tenure.services.pubsub.service:PubSub",
    "queues": "tenure.services.queues.service:Queues",
}


def service_type(name: str) -> type[Service[Any]]:
    """The class of the service of this name."""
    place, _, kind = PLACES[name].partition(":")
    found: type[Service[Any]] = getattr(import_module(place), kind)
    return found
