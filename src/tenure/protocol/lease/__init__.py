"""The lease protocol: messages, the lease table, and the machines of manager, owner and lookup.

The rules P1 to P24 and the promises S1 to S4 and L1 that the comments name are in
`tenure docs internals/protocol`.
"""
