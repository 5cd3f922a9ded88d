"""Infos as Gymnasium's vector environments give them: arrays, each with a mask of the environments that have it."""

from __future__ import annotations

from typing import Any

import numpy as np


def reset_infos(extras: dict[str, Any], mask: np.ndarray | None) -> dict[str, Any]:
    """The infos of a reset, of all environments or of those in `mask`."""
    infos: dict[str, Any] = {}
    for name, values in extras.get("info", {}).items():
        infos[name] = values if mask is None else _where(mask, values)
        infos[f"_{name}"] = np.ones(len(values), dtype=bool) if mask is None else mask.copy()
    return infos


def step_infos(
    extras: dict[str, Any], terminated: np.ndarray, truncated: np.ndarray, *, scalar_obs: bool
) -> dict[str, Any]:
    """The infos of a step, the final ones of ended episodes first, as Gymnasium adds them."""
    infos: dict[str, Any] = {}
    if "env_id" in extras:
        infos["env_id"] = extras["env_id"]
    if "final_obs" in extras or "episode" in extras:
        ended = terminated | truncated
        if ended.any():
            if "final_obs" in extras:
                _add_final(infos, extras, ended, scalar_obs)
            if "episode" in extras:
                _add_episode(infos, extras["episode"], ended)
    for name, values in extras.get("info", {}).items():
        infos[name] = values
        infos[f"_{name}"] = np.ones(len(values), dtype=bool)
    return infos


def _add_final(infos: dict[str, Any], extras: dict[str, Any], ended: np.ndarray, scalar_obs: bool) -> None:
    final_obs = np.full(len(ended), None, dtype=object)
    for i in np.flatnonzero(ended).tolist():
        final_obs[i] = _single(extras["final_obs"], i, scalar_obs)
    final_info: dict[str, Any] = {}
    for name, values in extras["final_info"].items():
        final_info[name] = _where(ended, values)
        final_info[f"_{name}"] = ended.copy()
    infos |= {"final_obs": final_obs, "_final_obs": ended, "final_info": final_info, "_final_info": ended.copy()}


def _add_episode(infos: dict[str, Any], episode: tuple[np.ndarray, ...], ended: np.ndarray) -> None:
    returns, lengths, seconds = episode
    infos["episode"] = {
        "r": np.where(ended, returns, 0.0),
        "l": np.where(ended, lengths, 0),
        "t": np.where(ended, np.round(seconds, 6), 0.0),
    }
    infos["_episode"] = ended.copy()


def _single(observations: Any, index: int, scalar: bool) -> Any:
    # A Discrete observation is a Python int in a single environment, a Box a row of its own.
    if isinstance(observations, tuple):
        return tuple(_single(leaf, index, scalar) for leaf in observations)
    if isinstance(observations, dict):
        return {name: _single(leaf, index, scalar) for name, leaf in observations.items()}
    return int(observations[index]) if scalar else observations[index].copy()


def _where(mask: np.ndarray, values: np.ndarray) -> np.ndarray:
    result = np.zeros_like(values)
    result[mask] = values[mask]
    return result
