"""How long tests wait for what should happen at once: one figure for all of them.

It says when to give up, not how fast anything is: a wait ends as soon as the event is there. Real
processes on a busy machine with two slow cores take ten times what they take at home, and a test
that gives up too early proves nothing.

For the same reason a test by the real clock, which is not about a term that runs out, takes the
preset `default`: a stall of 1.2 s loses every lease of the preset `test`.
"""

DEADLINE_SECONDS = 60.0
