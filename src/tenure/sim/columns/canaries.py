"""Nodes of the store with one rule left out, which the checkers must catch."""

from tenure.columns.node_replica import NodeReplica
from tenure.columns.range_horizons import RangeHorizons
from tenure.protocol.gossip.gossiper import Gossiper
from tenure.protocol.replication import admission, merging, parts, resolving
from tenure.protocol.replication.admission import Mutation
from tenure.protocol.replication.adoption import Adopting
from tenure.protocol.replication.catching_up import CatchingUp
from tenure.protocol.replication.comparing import Comparing
from tenure.protocol.replication.copying import Copying
from tenure.protocol.replication.merging import StateMerge
from tenure.protocol.replication.node import StoreNode
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.reading import Reading
from tenure.protocol.replication.replica import ReplicaPart
from tenure.protocol.replication.request import ReplicaRequest
from tenure.protocol.replication.resolving import Resolution
from tenure.protocol.replication.sealing import RangeUpkeep
from tenure.protocol.replication.states import RowState
from tenure.protocol.replication.told_topologies import ToldTopologies
from tenure.protocol.topology.cluster import LedCluster
from tenure.protocol.topology.records import Replicas
from tenure.protocol.topology.sessions import NodeSession
from tenure.sim.columns import breaks
from tenure.sim.kernel.canaries import RuleLeftOut, called

NONE = RuleLeftOut("none")
CANARIES: tuple[RuleLeftOut, ...] = (
    RuleLeftOut(
        "never-outrun",
        "R4: a first attempt that is not above all that the row has is refused",
        ((NodeReplica, "_apply", breaks.any_attempt_repeated),),
    ),
    RuleLeftOut(
        "answered-before-durable",
        "D5: a replica answers a write when it is durable",
        ((NodeContext, "when_durable", breaks.durable_already),),
    ),
    RuleLeftOut(
        "digests-not-compared",
        "R7: what a read returns a quorum has",
        ((Reading, "sameness", staticmethod(breaks.all_the_same)),),
    ),
    RuleLeftOut(
        "times-not-confirmed",
        "R8: columns in the order of time are looked up by name",
        ((Resolution, "is_confirmed", staticmethod(breaks.always)),),
    ),
    RuleLeftOut(
        "no-fence-for-writes",
        "R20: writes under a lower lease number are refused",
        ((admission, "may_write", breaks.always),),
    ),
    RuleLeftOut(
        "short-way-with-a-quorum",
        "R21: the short way is taken only where all have answered",
        ((Adopting, "is_settled_already", breaks.quorum_is_all),),
    ),
    RuleLeftOut(
        "never-compared",
        "R27: replicas are compared, and what one lacks it gets",
        ((Comparing, "begin", breaks.compared_already),),
    ),
    RuleLeftOut(
        "tombstones-by-time",
        "R23: tombstones go when all replicas have them, and not when they are old",
        ((NodeReplica, "_sweep", breaks.swept_by_time),),
    ),
    RuleLeftOut(
        "believed-of-anybody",
        "R32: one node's word ends no other node, and uses up no versions",
        ((ToldTopologies, "doubt", breaks.no_doubt),),
    ),
    RuleLeftOut(
        "no-joint-step",
        "R15: after filling comes a step in which both lists count",
        ((LedCluster, "_step", breaks.filled_is_done),),
    ),
    RuleLeftOut(
        "vouched-by-nobody",
        "R26: a life takes part when a majority of the ring vouches for it",
        ((Gossiper, "has_enough_vouching", breaks.always),),
    ),
    RuleLeftOut(
        "put-back-and-taken",
        "R26: a node whose counter went back is refused",
        (
            (Gossiper, "_give_up", breaks.nobody_goes_back),
            (Gossiper, "_hear_of_self", breaks.nobody_goes_back),
            (NodeSession, "is_past", breaks.never),
        ),
    ),
)

BY_SCHEDULE: tuple[RuleLeftOut, ...] = (
    RuleLeftOut(
        "no-catching-up",
        "R15: in the joint step nodes that gain ranges catch up",
        ((CatchingUp, "needed", staticmethod(breaks.nobody)),),
    ),
    RuleLeftOut(
        "returned-before-mended",
        "R7: a read returns when a quorum has what it returns",
        ((Reading, "is_kept", breaks.always),),
    ),
    RuleLeftOut(
        "old-list-alone",
        "R15: in the joint step the level is needed in both lists",
        ((Replicas, "lists", property(breaks.old_list_alone)),),
    ),
    RuleLeftOut(
        "lower-topology-served",
        "R16: a replica answers nothing under a lower topology than its own",
        ((StoreNode, "is_outdated", breaks.never),),
    ),
    RuleLeftOut(
        "caught-up-from-one",
        "R15: they catch up from a majority of each old list",
        ((CatchingUp, "needed", staticmethod(breaks.anybody)),),
    ),
    RuleLeftOut(
        "filled-without-wiping",
        "R17: what a node had of what it gains is wiped",
        ((Copying, "wipe", breaks.not_wiped),),
    ),
    RuleLeftOut(
        "merged-whatever-the-adoption",
        "R21: of an earlier adoption only what the present owner wrote counts",
        (
            (RowState, "is_known_to_count", breaks.merged_whatever_the_adoption),
            (Reading, "is_of_one_adoption", staticmethod(breaks.always)),
        ),
    ),
    RuleLeftOut(
        "pages-end-anywhere",
        "R8: a page is certain up to the lowest place where a part of it ends",
        ((Resolution, "certain", staticmethod(breaks.certain_to_the_last)),),
    ),
    RuleLeftOut(
        "read-before-durable",
        "D5: a replica says only what is durable",
        ((NodeContext, "when_row_durable", breaks.row_durable_already),),
    ),
    RuleLeftOut(
        "adopted-without-writing-back",
        "R21: what an adoption found is kept by a quorum as its state",
        ((Adopting, "is_settled_already", breaks.always),),
    ),
    RuleLeftOut(
        "repeats-merged-anywhere",
        "R4: a repeat that has not been at a replica is refused where it would be hidden",
        ((NodeReplica, "was_here", breaks.always),),
    ),
    RuleLeftOut(
        "no-traces",
        "R4: what is applied leaves a trace, so that a repeat is known again",
        ((NodeReplica, "traces", breaks.none_of_them),),
    ),
    RuleLeftOut(
        "traces-by-time",
        "R4: a trace has a digest of what was written, because two writers may draw one time",
        ((admission, "mark_of", breaks.version_alone), (merging, "mark_of", breaks.version_alone)),
    ),
    RuleLeftOut(
        "hints-traced-as-a-whole",
        "R4: a hint that lies below something leaves traces only of what counts",
        ((Mutation, "merged_marks", breaks.the_whole_of_it),),
    ),
    RuleLeftOut(
        "mended-markers-always-traced",
        "R4: a mended marker leaves a trace only if nothing in the row is above it",
        ((StateMerge, "_mark_clear", breaks.marked_anyway),),
    ),
    RuleLeftOut(
        "sealed-without-a-promise",
        "R23: before they give what they have, replicas promise to take nothing more of that time",
        ((NodeReplica, "_promise", breaks.promised_nothing),),
    ),
    RuleLeftOut(
        "tombstones-without-a-place",
        "D2: in the order of time a replica says what it has deleted, too",
        ((parts, "_by_time", breaks.live_by_time),),
    ),
    RuleLeftOut(
        "mended-below-the-seal",
        "R12: states are ignored below the sealed horizon",
        ((StateMerge, "_counts", breaks.known_or_not),),
    ),
    RuleLeftOut(
        "written-in-one-list",
        "R15: in the joint step a write needs both lists",
        ((ReplicaRequest, "needs", breaks.written_in_one_list),),
    ),
    RuleLeftOut(
        "read-in-one-list",
        "R15: in the joint step a read needs both lists",
        ((ReplicaRequest, "needs", breaks.read_in_one_list),),
    ),
    RuleLeftOut(
        "sealed-without-the-down",
        "R23: all replicas of a range take part in a seal",
        ((RangeUpkeep, "needed", breaks.those_that_are_up),),
    ),
    RuleLeftOut(
        "compared-before-promised",
        "R23: replicas promise first, and are compared then",
        ((RangeUpkeep, "_promise", breaks.compared_before_promising),),
    ),
    RuleLeftOut(
        "promised-before-durable",
        "R23: a horizon is promised durably",
        ((ReplicaPart, "_promise_horizon", breaks.promised_before_durable),),
    ),
    RuleLeftOut(
        "purged-by-a-promise",
        "R23: tombstones go when all have all, which a promise does not say",
        ((NodeReplica, "_promise", breaks.sealed_by_its_promise),),
    ),
    RuleLeftOut(
        "hints-below-the-horizon",
        "R24: hints pass the horizon like other writes",
        ((admission, "refusal_of", breaks.hints_pass_the_horizon),),
    ),
    RuleLeftOut(
        "answers-below-the-seal",
        "R7: below the highest seal only what was said with it counts",
        ((resolving, "merge_sections", breaks.merged_whatever_was_sealed),),
    ),
    RuleLeftOut(
        "promises-not-taken-over",
        "R25: who joins takes over what was promised",
        ((RangeHorizons, "within", breaks.without_promises),),
    ),
    RuleLeftOut(
        "seals-not-taken-over",
        "R25: who joins takes over what was sealed",
        ((RangeHorizons, "within", breaks.without_seals),),
    ),
    RuleLeftOut(
        "sealed-while-filling",
        "R25: while a range gains a replica it is not sealed",
        ((RangeUpkeep, "may_seal", breaks.always),),
    ),
    RuleLeftOut(
        "sealed-across-topologies",
        "R25: all of a seal is in one version of the topology",
        ((RangeUpkeep, "is_current", breaks.always),),
    ),
    RuleLeftOut(
        "no-fence-for-hints",
        "R20: hints under a lower lease number are refused",
        ((admission, "refusal_of", breaks.hints_pass_the_fence),),
    ),
    RuleLeftOut(
        "fenced-before-durable",
        "R20: a fence is raised durably",
        ((ReplicaPart, "_promise", breaks.fence_before_durable),),
    ),
    RuleLeftOut(
        "short-way-while-filling",
        "R21: while a node fills there is no short way",
        ((Adopting, "may_be_short", breaks.short_while_filling),),
    ),
    RuleLeftOut(
        "short-way-again",
        "R21: the short way is for the first try only",
        ((Adopting, "may_be_short", breaks.short_again),),
    ),
    RuleLeftOut(
        "attempts-in-any-order",
        "R21: of two tries of one owner the later one counts",
        ((StateMerge, "replaces", breaks.replaces_the_other_attempt),),
    ),
    RuleLeftOut(
        "mended-whatever-the-adoption",
        "R21: a mend of an earlier adoption brings nothing of former owners",
        ((StateMerge, "_counts", breaks.mended_whatever_the_adoption),),
    ),
    RuleLeftOut(
        "any-clock",
        "R3: a replica refuses a time far past its own clock",
        ((admission, "AHEAD_US", 1 << 62),),
    ),
)
"""Canaries that chance would take too long to find: each has a schedule that catches it."""


def columns_canary(name: str) -> RuleLeftOut:
    """The canary of that name. Raises ConfigurationError, which lists them."""
    return called(name, CANARIES, (*BY_SCHEDULE, NONE))
