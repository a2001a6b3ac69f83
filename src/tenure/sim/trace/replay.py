"""A trace replayed against an algorithm."""

from collections.abc import Callable
from typing import TypeAlias

from tenure.sim.trace.algorithms import Algorithm
from tenure.sim.trace.tally import Tally
from tenure.sim.trace.workload import Trace

Make: TypeAlias = Callable[[Trace, Tally], Algorithm]


def replay(trace: Trace, make: Make, watched: int = -1) -> Tally:
    """What the algorithm costs on the trace; the load of the `watched` server by the second."""
    tally = Tally(trace.volumes, watched)
    algorithm = make(trace, tally)
    read, write = algorithm.read, algorithm.write
    written, writes = 0, len(trace.write_at)
    next_write = trace.write_at[0] if writes else float("inf")
    for at, client, file in zip(trace.read_at, trace.reader, trace.read_file, strict=True):
        while next_write < at:
            write(next_write, trace.written_file[written])
            written += 1
            next_write = trace.write_at[written] if written < writes else float("inf")
        read(at, client, file)
    for n in range(written, writes):
        write(trace.write_at[n], trace.written_file[n])
    algorithm.end()
    return tally


def busiest(trace: Trace) -> list[int]:
    """The servers, by how often their files are read."""
    reads = [0] * trace.volumes
    for file in trace.read_file:
        reads[trace.volume_of[file]] += 1
    return sorted(range(trace.volumes), key=lambda volume: (-reads[volume], volume))
