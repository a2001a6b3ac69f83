"""Histories of real nodes: recorded under faults, and judged by values and real time, twice.

`make histories` runs them (`python -m lab histories`):

- `program`: what runs in a process of its own, as JSON says, perhaps with a wrong wall clock;
- `node_program`, `client_program`: a node; some clients, who write down what they ask and are told;
- `operations_of_clients`: what one client does;
- `hosts`: network namespaces and small disks, where the user may make them;
- `ring`: the manager and the nodes;
- `trouble`: what goes wrong with them, drawn from a seed;
- `outages`: how long clients had no answer, though there was a quorum;
- `starvation`: how long processes had no processor meanwhile, which is no fault of theirs;
- `verdicts`: the judges of `lab.judges`, and Porcupine;
- `recorded_run`: one run, from its start to its verdict.
"""
