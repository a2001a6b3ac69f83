"""Histories: what clients asked and were told, and judges of it that know nothing else.

A judge sees no version, message or state of a node: only operations with their values, and the real
times at which each began and ended. So the same judges serve simulated and real stores, and they
share no idea of what is right with the protocol that they judge.

- `operations`: one write or read of some columns of one key;
- `orders`: the search for an order of the reads and writes of one register;
- `registers`: each column as a register, of which what is settled is forgotten.
"""
