"""The lease protocol in the simulator: managers, owners, lookups, and their users.

Nothing here decides anything of the protocol: `processes` run the very machines of the service. The
list goes from the bottom up, and nothing imports a module from further down the list:

- `words`, `hosts`, `faults`: stories, attestation and faults, in the words of leases;
- `processes`: managers, owners and lookups, and their needs of the world;
- `checkers`, `workload`, `traffic`, `operator`: watching, using and steering the pool;
- `strikes`: the table of faults;
- `trial`: what to run;
- `world`, `run`: all of it together, and many of them on all cores;
- `small`, `moves`, `exhaustive`: every story of a world small enough to look at all of them.
"""
