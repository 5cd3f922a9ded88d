"""From settings to the algorithm that they are of."""

from __future__ import annotations

from gymnasium import Space

from raceway.algos.algorithm import Algorithm
from raceway.algos.configs import A2CConfig, AlgorithmConfig, ImpalaConfig, NetworkConfig, PPOConfig, PQNConfig
from raceway.algos.networks import UserNetwork


def build_algorithm(
    config: AlgorithmConfig,
    observation_space: Space,
    action_space: Space,
    network: NetworkConfig | UserNetwork = NetworkConfig(),  # noqa: B008 (frozen)
) -> Algorithm:
    """The algorithm whose settings these are, for these spaces and this network."""
    match config:
        case PPOConfig():
            from raceway.algos.ppo import PPO

            return PPO(config, observation_space, action_space, network)
        case A2CConfig():
            from raceway.algos.a2c import A2C

            return A2C(config, observation_space, action_space, network)
        case ImpalaConfig():
            from raceway.algos.impala import Impala

            return Impala(config, observation_space, action_space, network)
        case PQNConfig():
            from raceway.algos.pqn import PQN

            return PQN(config, observation_space, action_space, network)
