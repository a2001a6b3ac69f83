"""The papers' services, over HTTP, each on the public API alone."""
