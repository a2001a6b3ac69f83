"""The simulator's kernel: time, processes, network, hosts and faults for any set of machines.

It knows no lease and no other protocol. A tier brings its machines, the messages between them, the
faults that only it can have, and the checkers of its promises; `sim/lease` is the first. From the
bottom up, and nothing here imports what stands above it:

- `clocks`, `hosts`, `story`: what a process has around it;
- `scene`: real time, the dice and the story, which everything in a world shares;
- `faults`: what goes wrong, as a typed table, and how often;
- `process`: one life of one process, and every way to stop it;
- `loop`, `loop_process`: an asyncio event loop in the place of a machine, for code that waits;
- `network`: what passes between processes;
- `strikes`: the faults that any world may have;
- `checkers`: the frame of what watches;
- `world`: all of it together, in phases of faults and of healing;
- `cores`: many seeds at once.

Beside it, for what is short instead of deep:

- `memo`: every state of a machine as a number;
- `exhaustive`: the search through every story, with choices for dice;
- `small`: a world of few processes that is searched so.
"""
