"""What an application keeps in one simulated owner process: nothing but a dictionary."""

from tenure.base.keys import Key

Values = dict[Key, int]
"""The version of each key that has any state."""


class Store:
    """What the application in one owner process has."""

    def __init__(self) -> None:
        self.values: Values = {}
        """All of it, served or not, as in the dictionary of a simple application."""
