"""What went wrong with Python environments: what `on_error="restart"` has to be watched by."""

from __future__ import annotations

from collections.abc import Iterable

from gymnasium.vector import VectorEnv

from raceway.algos.rollout import Faults
from raceway.envs.python import ProcessPool, PythonPool


class FaultCount:
    """Counts the faults of some vector environments. Only pools of Python environments have any."""

    def __init__(self, envs: Iterable[VectorEnv]) -> None:
        self._pools = [env for env in envs if isinstance(env, PythonPool)]
        self._envs, self._workers = self._total()

    def new(self, first: str = "") -> Faults:
        """Since the last time that it was asked. `first`: the words of the first one."""
        envs, workers = self._total()
        found = Faults(envs - self._envs, workers - self._workers, first)
        self._envs, self._workers = envs, workers
        return found

    def _total(self) -> tuple[int, int]:
        envs = sum(int(pool.faults.sum()) for pool in self._pools)
        return envs, sum(pool.restarts for pool in self._pools if isinstance(pool, ProcessPool))
