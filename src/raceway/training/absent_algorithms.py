"""Algorithms that users ask for and Raceway does not have: which of its own to use instead."""

from __future__ import annotations

import re
from collections.abc import Mapping

_CONTINUOUS = "For continuous actions use ppo."
_DISCRETE = "For discrete actions use pqn, Q-learning without a replay buffer, or ppo."
_POLICY_GRADIENT = "Use ppo, or a2c for one gradient step per rollout."
_NO_MODEL = "Raceway has no model-based algorithms. Use ppo, or pqn for discrete actions."
_PARALLEL = "Use impala, which corrects for old policies, or ppo."
_MEMORY = "Use ppo with memory: --algo ppo --network.gru 64."
_MASKS = 'Use ppo: it applies the "action_mask" in the infos of an environment.'

_INSTEAD: Mapping[str, str] = {
    **dict.fromkeys(("sac", "td3", "ddpg", "d4pg", "tqc", "redq", "droq", "crossq", "naf", "mpo"), _CONTINUOUS),
    **dict.fromkeys(
        ("dqn", "ddqn", "doubledqn", "duelingdqn", "c51", "qrdqn", "iqn", "fqf", "rainbow", "r2d2", "apex", "apexdqn",
         "qlearning", "sarsa", "sacdiscrete", "discretesac", "bbf", "agent57", "hdqn"),
        _DISCRETE,
    ),
    **dict.fromkeys(("trpo", "ppg", "npg", "vpg", "reinforce", "acktr", "acer", "rpo", "pg"), _POLICY_GRADIENT),
    **dict.fromkeys(("appo", "seedrl", "vtrace", "ga3c", "dppo"), _PARALLEL),
    **dict.fromkeys(("recurrentppo", "pporecurrent", "ppolstm", "lstmppo", "ppogru", "ppornn", "rppo"), _MEMORY),
    **dict.fromkeys(("maskableppo", "ppomask", "ppomaskable", "maskppo"), _MASKS),
    **dict.fromkeys(("dreamer", "dreamerv2", "dreamerv3", "muzero", "efficientzero", "alphazero", "mbpo", "pets",
                     "tdmpc", "tdmpc2", "planet", "worldmodels"), _NO_MODEL),
    **dict.fromkeys(("es", "ars", "cmaes", "cem", "openaies", "neat"), "Raceway has no evolution strategies. Use ppo."),
    **dict.fromkeys(("bc", "gail", "airl", "dagger", "cql", "iql", "bcq", "decisiontransformer", "awac", "marwil"),
                    "Raceway has no algorithms that learn from recorded data. Use ppo to learn in the environment."),
    **dict.fromkeys(("mappo", "ippo", "qmix", "vdn", "maddpg"), "Raceway has no multi-agent algorithms."),
    "her": "Raceway has no replay buffer to relabel. Use ppo.",
}  # fmt: skip


def instead_of(name: str) -> str:
    """Which algorithm to use instead of a well-known one that is not here; empty for a name that is unknown."""
    return _INSTEAD.get(re.sub(r"[^a-z0-9]", "", name.lower()), "")
