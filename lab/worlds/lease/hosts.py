"""Simulated processes, in the words of attestation: identities, and views of each other."""

from tenure.protocol.lease.attestation import Sight
from tenure.protocol.lease.messages import Process
from tenure.sim.kernel.hosts import HostProcess, Hosts


def as_process(process: HostProcess) -> Process:
    """The process as it sees itself."""
    boot_id, pid_namespace, time_namespace, pid, start_time = process.identity
    return Process(
        boot_id=boot_id,
        pid_namespace=pid_namespace,
        time_namespace=time_namespace,
        pid=pid,
        start_time=start_time,
    )


def sight(hosts: Hosts, witness: HostProcess, pid: int) -> Sight:
    """The view that a living process has of a pid, in its own namespaces."""
    seen_from, seen = as_process(witness), hosts.look(witness, pid)
    return Sight(seen_from=seen_from, **seen._asdict())
