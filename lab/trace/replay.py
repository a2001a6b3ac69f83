"""A trace replayed against an algorithm."""

from array import array
from collections.abc import Callable
from typing import TypeAlias

from lab.trace.algorithms import Algorithm
from lab.trace.tally import Tally
from lab.trace.workload import Trace

Make: TypeAlias = Callable[[Trace, Tally], Algorithm]


def replay(trace: Trace, make: Make, watched: int = -1) -> Tally:
    """The cost of the algorithm on the trace; the load of the `watched` server by the second."""
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


def without_needless_writes(trace: Trace) -> Trace:
    """The trace without the writes that no algorithm notices, for which it costs the same.

    A write ends every lease on its file, and makes every copy of it old. Until the file is read
    again, another write changes nothing. Of a hundred times the paper's writes one in forty counts.
    The last write stays, because the trace ends with it.
    """
    read_since = bytearray(len(trace.volume_of))
    write_at, written_file = array("d"), array("i")
    reads = iter(zip(trace.read_at, trace.read_file, strict=True))
    read = next(reads, None)
    for at, file in zip(trace.write_at, trace.written_file, strict=True):
        while read is not None and read[0] <= at:
            read_since[read[1]] = 1
            read = next(reads, None)
        if read_since[file]:
            read_since[file] = 0
            write_at.append(at)
            written_file.append(file)
    if trace.write_at and (not write_at or write_at[-1] != trace.write_at[-1]):
        write_at.append(trace.write_at[-1])
        written_file.append(trace.written_file[-1])
    return trace._replace(write_at=write_at, written_file=written_file)


def busiest(trace: Trace) -> list[int]:
    """The servers, by how often their files are read."""
    reads = [0] * trace.volumes
    for file in trace.read_file:
        reads[trace.volume_of[file]] += 1
    return sorted(range(trace.volumes), key=lambda volume: (-reads[volume], volume))
