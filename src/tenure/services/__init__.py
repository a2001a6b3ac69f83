"""The papers' services, over HTTP. Each uses only the public API."""
