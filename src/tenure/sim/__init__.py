"""The deterministic simulator: the very machines of the service, in virtual time, from one seed.

The simulator decides nothing of the protocol. `kernel` has time, processes, the network, hosts and
faults for any set of machines, and knows none of them; `lease` brings the machines of leases, and
the checkers of their promises.
"""
