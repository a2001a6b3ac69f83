"""The deterministic simulator: the very machines of the service, in virtual time, from one seed.

Nothing here decides anything of the protocol. The world (`world`) holds the queue of what happens
when; processes (`process`) run machines and stop, die or are overtaken at any point; the network
(`network`) and the journal (`journal`) misbehave as `faults` tells them; `checkers` watch, with
real time as the judge, which no process can see. `exhaustive` looks at every story of a world small
enough for that.
"""
