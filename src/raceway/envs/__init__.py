"""Environments behind one door: `make`. Importing it makes them known to Gymnasium as `raceway/<id>`."""

from raceway.envs.catalog import list_envs
from raceway.envs.make import make
from raceway.envs.native import NativePool
from raceway.envs.registration import register_all

__all__ = ["NativePool", "list_envs", "make"]

register_all()
