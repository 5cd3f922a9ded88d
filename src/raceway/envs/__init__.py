"""Environments behind one door: `make`. Importing it makes them known to Gymnasium as `raceway/<id>`."""

from raceway.envs.catalog import list_envs
from raceway.envs.make import make
from raceway.envs.native import NativePool
from raceway.envs.registration import register_all
from raceway.envs.user_native import load_native

__all__ = ["NativePool", "list_envs", "load_native", "make"]

register_all()
