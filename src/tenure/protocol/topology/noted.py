"""The kinds of notes that a leader makes about its clusters."""

from enum import unique

from tenure.base.noted import Level, NotedKind


@unique
class TopologyKind(NotedKind):
    """All kinds of these notes."""

    CLUSTER_CREATED = "cluster created", Level.INFO
    CLUSTER_DELETED = "cluster deleted", Level.INFO
    NODE_KNOWN = "node registered", Level.INFO
    RING_FORMED = "ring formed", Level.INFO
    NOT_FORMED = "ring not formed", Level.WARNING, True
    CHANGE_BEGUN = "ring change begun", Level.INFO
    CHANGE_JOINT = "ring change joint", Level.INFO
    CHANGE_DONE = "ring change done", Level.INFO
    CHANGE_TAKEN_BACK = "ring change taken back", Level.WARNING
    SCHEMA_CHANGED = "schema changed", Level.INFO
    BALANCE_SET = "balance of the ring set", Level.INFO
    READ_BACK = "topology read back from nodes", Level.WARNING
    AHEAD = "a node has a later topology than the journal", Level.ERROR, True
    TAKEN_DOWN = "node taken to be down", Level.WARNING
    UP_AGAIN = "node is up again", Level.INFO
    DOUBTED_NODE = "node not believed", Level.WARNING, True
    REFUSED_NODE = "node refused", Level.WARNING, True
