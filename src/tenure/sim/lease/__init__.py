"""The lease protocol in the simulator: managers, owners, lookups, and who uses them.

Nothing here decides anything of the protocol: `processes` run the very machines of the service.
From the bottom up, and nothing here imports what stands above it:

- `words`, `hosts`, `faults`: stories, attestation and what goes wrong, in the lease's words;
- `processes`: managers, owners and lookups, and what they need of their world;
- `checkers`, `workload`, `traffic`, `operator`: who watches, who uses the pool, who steers it;
- `strikes`: the table of faults;
- `trial`, `canaries`: what to run, and which rule is left out;
- `world`, `run`: all of it together, and many of them on all cores;
- `small`, `moves`, `exhaustive`: every story of a world small enough to look at all of them.
"""
