"""The store of an application in one simulated owner process: nothing but a dictionary."""

from tenure.base.keys import Key

Values = dict[Key, int]
"""The version of each key that has any state."""


class Store:
    """The state of the application in one owner process."""

    def __init__(self) -> None:
        self.values: Values = {}
        """All of the state, served or not, as in the dictionary of a simple application."""
