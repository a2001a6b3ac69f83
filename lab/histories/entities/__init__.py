"""Entities that are kept and read everywhere, while whatever there is of them is killed or stopped.

`python -m lab kills` runs them. Owners, readers, the nodes of their store and the managers are
processes, and so are the clients, who write down what they ask and are told. Nothing else is judged
(`lab.judges.logs`).

- `log_entity`: the entity, and what a client and a member say to each other;
- `member_program`: a process that owns some of the keys, or only reads them;
- `log_clients`: a process of clients;
- `log_system`: all processes, and what can be done to them;
- `kills`: what is done to them, drawn from a seed;
- `kill_run`: one run, from its start to its verdict.
"""
