"""Raceway: reinforcement learning as fast as the machine allows, and the same seed gives the same bits."""

from raceway.envs import list_envs, make

__all__ = ["__version__", "list_envs", "make"]
__version__ = "0.1.0"
