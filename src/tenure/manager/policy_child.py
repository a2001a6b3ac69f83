"""A process in which a policy from outside runs: situations come, and plans go. `policy_process`
begins it.

The policy finds its memory here again: of that, only a number goes to the manager. A process that
was begun anew knows no number, and the policy begins as under a new leader.
"""

import sys
import time
from importlib import import_module
from typing import Any

import msgspec

from tenure.bounded_child import Answering, answer_within
from tenure.manager.policy_messages import WORDS, AskedSituation, ToldPlan, told
from tenure.protocol.balance.policy import Policy

MEMORIES = 64
"""How many memories are kept: a leader asks for the last, and for those of a dry run's rounds."""


class HostedPolicy:
    """The policy, and what it remembers."""

    def __init__(self, target: str) -> None:
        self._policy: Policy = loaded(target)
        self._memories: dict[int, object] = {}
        self._last = time.time_ns()
        """The number of the last plan: none that an earlier process gave."""

    def plan(self, asked: AskedSituation) -> ToldPlan:
        """Ask the policy."""
        memory = self._memories.get(asked.memory)
        plan = self._policy(asked.situation(memory))
        self._last += 1
        answer = told(plan, self._last)
        self._memories[self._last] = plan.memory
        self._memories.pop(self._last - MEMORIES, None)
        return answer


def loaded(target: str) -> Any:  # noqa: ANN401  # whatever it is
    """An instance of what `module:Class` names. Raises what importing or making it raises, or
    TypeError if that cannot be called.
    """
    module, _, name = target.partition(":")
    made: Any = import_module(module)
    for part in name.split("."):
        made = getattr(made, part)
    policy = made()
    if not callable(policy):
        raise TypeError(f"{target} makes a {type(policy).__name__}, which cannot be called")
    return policy


def _answering(target: str) -> Answering:
    """Plans; or says each time why the policy cannot be used."""
    try:
        hosted = HostedPolicy(target)
    except Exception as error:  # noqa: BLE001 - it is somebody's module: anything may come
        why = msgspec.msgpack.encode(ToldPlan(_in_words(error)))
        return lambda _: why
    decoder = msgspec.msgpack.Decoder(AskedSituation)

    def answer(request: bytes) -> bytes:
        try:
            return msgspec.msgpack.encode(hosted.plan(decoder.decode(request)))
        except Exception as error:  # noqa: BLE001 - it is somebody's policy
            return msgspec.msgpack.encode(ToldPlan(_in_words(error)))

    return answer


def _in_words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:WORDS]


def main(target: str, *limits: str) -> None:
    """Plan until there is nobody to plan for."""
    answer_within(lambda: _answering(target), *map(int, limits))


if __name__ == "__main__":
    main(*sys.argv[1:])
