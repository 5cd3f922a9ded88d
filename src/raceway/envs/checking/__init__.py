"""The checker: whether training works with an environment, whether runs repeat, and how fast each lane runs it."""

from raceway.envs.checking.examine import check
from raceway.envs.checking.findings import CheckReport, EnvSpeed, Finding, LaneSpeed

__all__ = ["CheckReport", "EnvSpeed", "Finding", "LaneSpeed", "check"]
