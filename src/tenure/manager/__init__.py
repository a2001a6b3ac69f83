"""The service that decides who owns what."""
