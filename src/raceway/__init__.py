"""Raceway: reinforcement learning as fast as the machine allows, and the same seed gives the same bits."""

try:
    from raceway import _core  # noqa: F401 (tried first: everything below needs it)
except ImportError as error:
    if "libmujoco" not in str(error):
        raise
    from raceway._library import load_or_explain

    load_or_explain(error)

from raceway.envs import list_envs, make

__all__ = ["__version__", "list_envs", "make"]
__version__ = "0.1.0"
