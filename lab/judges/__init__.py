"""Histories: what clients asked and were told, and judges of it that know nothing else.

A judge sees no version, message or state of a node: only operations with their values, and the real
times at which each began and ended. So the same judges serve simulated and real stores, and they
share no idea of what is right with the protocol that they judge.

- `operations`: a write, or a read, of some columns of one key; a page of a section, such as a set;
- `orders`: the search for an order of the reads and writes of one register;
- `registers`: each column, and each member of a set, as a register; what is settled is forgotten;
- `outcomes`: what writers were told;
- `pages`: what is read together;
- `fenced`: the rows of owners;
- `judging`: all of them over one history.
"""
