"""The gateway: where clients connect, in front of the processes that own keys."""
