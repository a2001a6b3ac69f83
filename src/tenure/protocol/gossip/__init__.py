"""Gossip: nodes tell each other about each other, and suspect silent ones of being dead.

No node keeps a central list of the living. Each node talks with a few others each second, and each
of the two takes what the other knows better. So news reaches all nodes in a few rounds, whichever
of the nodes are gone (5.3 of the paper; Scuttlebutt, and the accrual failure detector).

The rules are R26, R29 and R30: see `tenure docs internals/columns`.
"""
