"""A world of entities: a class for each key, as the library runs it, under all faults.

Managers, network and faults are those of `sim/app`. Each process has the real `Entities` with an
entity that keeps a ledger, and users who call it and talk to it over sockets. None of the deciding
code is a model: turns, envelopes, links, edges, and the SQL of a store are the library's.

- `ledger`: the entity, all of whose outputs say what it did;
- `history`, `checkers`: what was seen of each key, and what may be seen of it;
- `store`: a database that is slow, fails, and does what it was asked while its answer is lost;
- `users`: calls, repeats and sockets;
- `world`, `trial`, `run`: all of it together.
"""
