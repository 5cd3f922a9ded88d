"""What ended episodes leave in the infos, as Gymnasium's vector environments tell it."""

from __future__ import annotations

from typing import Any

import numpy as np


def without_ends(infos: dict[str, Any]) -> dict[str, Any]:
    """The infos of a reset: no episode ends in one."""
    for name in ("final_obs", "final_info", "episode"):
        infos.pop(name, None)
    return infos


def add_ends(infos: dict[str, Any], ended: np.ndarray, *, scalar_obs: bool) -> None:
    """Puts the last observations, infos and statistics of `ended` episodes in the place of what they are made of."""
    final_obs, final_info = infos.pop("final_obs", None), infos.pop("final_info", None)
    episode = infos.pop("episode", None)
    if not ended.any():
        return
    if final_obs is not None:
        infos["final_obs"], infos["_final_obs"] = _final_obs(final_obs, ended, scalar_obs), ended
        infos["final_info"], infos["_final_info"] = _final_info(infos, final_info, ended), ended.copy()
    if episode is not None:
        returns, lengths, seconds = episode
        infos["episode"] = {
            "r": np.where(ended, returns, 0.0),
            "l": np.where(ended, lengths, 0),
            "t": np.where(ended, np.round(seconds, 6), 0.0),
        }
        infos["_episode"] = ended.copy()


def _final_obs(observations: Any, ended: np.ndarray, scalar_obs: bool) -> np.ndarray:
    final_obs = np.full(len(ended), None, dtype=object)
    for i in np.flatnonzero(ended).tolist():
        final_obs[i] = _single(observations, i, scalar_obs)
    return final_obs


def _final_info(infos: dict[str, Any], columns: dict[str, np.ndarray], ended: np.ndarray) -> dict[str, Any]:
    final_info: dict[str, Any] = {}
    for name, values in columns.items():
        final_info[name] = np.zeros_like(values)
        final_info[name][ended] = values[ended]
        final_info[f"_{name}"] = ended.copy()
    for name in ("fault", "_fault"):  # a fault belongs to the episode that it ended
        if name in infos:
            final_info[name] = infos.pop(name)
    return final_info


def _single(observations: Any, index: int, scalar: bool) -> Any:
    # A Discrete observation is a Python int in a single environment, a Box a row of its own.
    if isinstance(observations, tuple):
        return tuple(_single(leaf, index, scalar) for leaf in observations)
    if isinstance(observations, dict):
        return {name: _single(leaf, index, scalar) for name, leaf in observations.items()}
    return int(observations[index]) if scalar else observations[index].copy()
