"""Simulated processes in the words of attestation: who they are, and what one sees of another."""

from tenure.protocol.lease.attestation import Sight
from tenure.protocol.lease.messages import Process
from tenure.sim.kernel.hosts import HostProcess, Hosts


def as_process(process: HostProcess) -> Process:
    """As it sees itself."""
    return Process(*process.identity)


def sight(hosts: Hosts, witness: HostProcess, pid: int) -> Sight:
    """What a living process sees of a pid, in its own namespaces."""
    seen_from, seen = as_process(witness), hosts.look(witness, pid)
    return Sight(seen_from=seen_from, **seen._asdict())
