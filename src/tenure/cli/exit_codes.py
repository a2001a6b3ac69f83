"""The exit codes of the command line that are not those of one command."""

INTERRUPTED = 130
"""What shells give for a process that SIGINT ended."""
