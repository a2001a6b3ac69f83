"""A world of entities: a class for each key, as the library runs it, under all faults.

Managers, network and faults are those of `sim/app`. In each process there are the real `Entities`
with an entity that keeps a ledger, and users who call it and talk to it over sockets. Nothing of
what decides is a model: turns, envelopes, links, edges, and the SQL of a store are the library's.

- `ledger`: the entity, which says what it did in all that it lets out;
- `history`, `checkers`: what was seen of each key, and what may be seen of it;
- `store`: a database that is slow, fails, and does what it was asked while its answer is lost;
- `users`: calls, repeats and sockets;
- `world`, `trial`, `run`: all of it together;
- `canaries`, `breaks`: the library with one rule left out.
"""
