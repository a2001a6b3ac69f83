"""The lease protocol in the simulator: managers, their journal and operator, and the checkers.

Nothing here decides anything of the protocol: `processes` run the very machines of the service. The
list goes from the bottom up, and nothing imports a module from further down the list:

- `words`, `faults`: stories and faults, in the words of leases;
- `processes`: managers, what the world sees of owners, and their needs of the world;
- `checkers`, `policy_watch`, `operator`: watching and steering the pools;
- `strikes`: the faults that strike at times of their own;
- `trial`: what to run;
- `journaled_world`, `managed_world`: all of it together, but for the clients of the managers.

Users' programs are such clients (`sim/app`).
"""
