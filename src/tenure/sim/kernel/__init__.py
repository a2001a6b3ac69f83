"""The simulator's kernel: time, processes, network, hosts and faults for any set of machines.

It knows no lease and no other protocol. A tier brings its machines, the messages between them, the
faults that only it can have, and the checkers of its promises; `sim/lease` is the first. The list
goes from the bottom up, and nothing imports a module from further down the list:

- `clocks`, `hosts`, `story`: what a process has around it;
- `scene`: real time, the dice and the story, which everything in a world shares;
- `faults`: what goes wrong, as a typed table, and how often;
- `process`: one life of one process, and every way to stop it;
- `loop`, `loop_process`: an asyncio event loop instead of a machine, for code that waits;
- `network`: messages between processes;
- `strikes`: the faults that any world may have;
- `checkers`: the frame of checkers;
- `world`: all of it together, in phases of faults and of healing;
- `cores`: many seeds at once.

Beside it, for stories that are short instead of deep:

- `memo`: every state of a machine as a number;
- `exhaustive`: the search through every story, with choices for dice;
- `small`: a world of few processes, for that search.
"""
