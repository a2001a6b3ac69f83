"""Attacks: what hostile peers of every role do to a manager, a service, nodes and processes."""
