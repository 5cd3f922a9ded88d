"""Algorithms in pure JAX. They know no environments, threads or files: arrays in, arrays out.

Nothing is imported here, so that `raceway.algos.rollout` and `raceway.algos.moments` can be used without JAX.
"""
