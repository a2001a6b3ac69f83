"""The world of leases with users' own programs in it: the library runs in them, as it is.

Managers, their journal, the network and the faults are those of `sim/lease`. Instead of simulated
owners and lookups there are processes that run coroutines (`kernel/loop_process`), in which the
real `Owner`, `Lookup` and `Member` live.

- `links`: channels between processes, by which state is handed over and requests are relayed;
- `site`: what programs and their clients need of the world;
- `clients`: what the library has around it there, and what the checkers see of it;
- `processes`: one life of one program;
- `strikes`, `world`: what goes wrong with them, and all of it together.
"""
