"""`tenure demo`: a whole service on this machine, and trouble made for it.

The service is the instant messaging of the PRS paper (section 1, figure 1). Clients publish whether
they are online and look their friends up. Frontends send these requests to the owner of each user's
key. Owners keep presence in memory only, and have no other copy. When a crash loses presence, the
frontends publish again what their clients had published.

Every part is a process of its own, as it would be in production: managers, owners, frontends.
This process starts them, kills and stops owners, shows what happens, and judges by a record of its
own whether two owners ever served one key at the same time.

    command          the options of the command line
    run              the whole, from start to summary
    service          the presence service: its processes, and the lease table
    children         processes: started, spoken with, ended
    managers         the managers, which of them leads, and the etcd that they share
    places           the owners and frontends, as the demo knows them
    scenario         what the demo does to the service, of which there are several:
    faults           owners are killed and stopped; also leaders, or an owner that is broken
    rolling_restart  every owner is replaced
    crash            owners are killed, and the dark time is measured
    hot_keys         half of all requests go to a few keys of one owner
    owner            a process that serves; `presence` is its state, `record` what it served
    frontend         a process with clients; `routing` finds the owner for each operation
    judge            whether two owners ever served one key at the same time
    display          a way to show it: `screen` in a terminal, `lines` without one
    summary          what the demo came to
"""
