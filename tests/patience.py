"""How long tests wait for what should happen at once: one figure for all of them.

It says when to give up, not how fast anything is: a wait ends as soon as the event is there. Real
processes on a busy machine with two slow cores take ten times what they take at home, and a test
that gives up too early proves nothing.
"""

DEADLINE_SECONDS = 60.0
