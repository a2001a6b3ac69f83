"""What acts: the one driver that runs any machine, and the clocks it reads."""
