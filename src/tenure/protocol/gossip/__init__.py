"""What nodes tell each other about each other, and which of them are suspected to be dead.

Nobody keeps a list of who is alive. Each node talks with a few others each second, and both take
what the other knows better. So news reaches all nodes in a few rounds, whichever of them are gone
(5.3 of the paper; Scuttlebutt, and the accrual failure detector).

The rules are R26, R29 and R30: see `tenure docs internals/columns`.
"""
