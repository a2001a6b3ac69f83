"""`tenure demo`: a whole service on this machine, and trouble made for it.

The service is the instant messaging of the PRS paper (section 1, figure 1). Clients publish whether
they are online and look their friends up; frontends send that to the owner of each user's key;
owners keep presence in memory only, and have no other copy. What is lost in a crash is published
once more by the frontends whose clients it was.

Every part is a process of its own, as it would be in production: managers, owners, frontends.
This process starts them, kills and stops owners, shows what happens, and judges by a record of its
own whether ever two owners served one key at once.

    command      what can be said on the command line
    run          the whole, from start to summary
    children     processes: started, spoken with, ended
    managers     who leads, and the etcd that they share
    failovers    leaders killed
    trouble      who is killed or stopped, and when; `rolling` restarts all, `crashes` only kills,
                 `crowds` kills nobody, and asks for a few keys only
    owner        a process that serves; `presence` is its state, `record` what it served
    frontend     a process with clients; `routing` finds the owner for each of their operations
    judge        whether two owners ever served one key at once
    screen       live in a terminal; `lines` without one; `summary` at the end
"""
