"""The lab: what shows that tenure keeps its promises. None of it is in the wheel.

- `worlds`: simulated worlds of every tier, over the simulator in `tenure.sim`;
- `search`: every story of a world that is small enough;
- `judges`: histories, simulated or real, and what may be in them;
- `histories`: real nodes under faults, recorded for the judges;
- `mutants`: the product with one rule left out, as patches of text, and how they are run;
- `hunt`: whether every one of them is noticed;
- `simulate`: seeds of a tier, perhaps with a mutant, told to people;
- `trace`: what consistency costs, as the Volume Leases paper compared it;
- `demo`: the demos beside that of the first page;
- `contracts`: what every store, engine, policy, transport and datagram socket of ours must do.

`python -m lab` says what can be run. The product knows nothing of the lab.
"""
