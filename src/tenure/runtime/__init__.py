"""The code that acts: the one driver that runs any machine, and the clocks that it reads."""
