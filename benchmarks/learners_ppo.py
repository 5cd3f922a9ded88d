"""PPO as a user of JAX writes it in CleanRL's manner: a handful of jitted functions over plain arrays.

It is a peer, so it is as fast as that manner allows: one compiled call gives actions, log-probabilities and values, and
one compiled call is a whole update, advantages, epochs and minibatches included. Everything is float32 by name, because
EnvPool's XLA interface needs 64-bit mode for MuJoCo.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from benchmarks.train_settings import CLIP, ENTROPY, HIDDEN, MAX_GRADIENT, VALUE, Setting

Params = dict[str, Any]


class Storage(NamedTuple):
    """A round, time first."""

    obs: Any
    actions: Any
    log_probs: Any
    values: Any
    rewards: Any
    ends: Any


class Decision(NamedTuple):
    """What a policy says about a batch of observations."""

    actions: Any
    applied: Any
    """What the environment is given: clipped where actions are numbers."""
    log_probs: Any
    values: Any


def dense(key: jax.Array, sizes: Sequence[int], last_scale: float) -> list[tuple[jax.Array, jax.Array]]:
    """Layers with orthogonal weights."""
    scales, layers = [2.0**0.5] * (len(sizes) - 2) + [last_scale], []
    for inner, outer, scale in zip(sizes[:-1], sizes[1:], scales, strict=True):
        key, own = jax.random.split(key)
        weights = jax.nn.initializers.orthogonal(scale)(own, (inner, outer), jnp.float32)
        layers.append((weights, jnp.zeros(outer, jnp.float32)))
    return layers


def init(key: jax.Array, obs_size: int, action_size: int, *, continuous: bool) -> Params:
    """Separate networks for actor and critic."""
    first, second = jax.random.split(key)
    params: Params = {
        "actor": dense(first, (obs_size, *HIDDEN, action_size), 0.01),
        "critic": dense(second, (obs_size, *HIDDEN, 1), 1.0),
    }
    return params | ({"log_std": jnp.zeros(action_size, jnp.float32)} if continuous else {})


def apply(layers: list[tuple[jax.Array, jax.Array]], x: jax.Array) -> jax.Array:
    for weights, bias in layers[:-1]:
        x = jnp.tanh(x @ weights + bias)
    weights, bias = layers[-1]
    return x @ weights + bias


def value(params: Params, obs: jax.Array) -> jax.Array:
    return apply(params["critic"], obs)[..., 0]


def log_prob_and_entropy(params: Params, obs: jax.Array, actions: jax.Array) -> tuple[jax.Array, jax.Array]:
    heads = apply(params["actor"], obs)
    if "log_std" in params:
        log_std = params["log_std"]
        z = (actions - heads) * jnp.exp(-log_std)
        log_prob = jnp.sum(-0.5 * z * z - log_std - 0.5 * np.float32(np.log(2 * np.pi)), -1)
        return log_prob, jnp.sum(log_std + 0.5 * np.float32(np.log(2 * np.pi * np.e)))
    logits = jax.nn.log_softmax(heads)
    log_prob = jnp.take_along_axis(logits, actions[..., None], -1)[..., 0]
    return log_prob, -jnp.mean(jnp.sum(jnp.exp(logits) * logits, -1))


def act(params: Params, obs: jax.Array, key: jax.Array) -> tuple[Decision, jax.Array]:
    """Actions, log-probabilities and values, and the key for the next step."""
    key, own = jax.random.split(key)
    heads = apply(params["actor"], obs)
    if "log_std" in params:
        noise = jax.random.normal(own, heads.shape, jnp.float32)
        actions = heads + jnp.exp(params["log_std"]) * noise
        applied = jnp.clip(actions, -1.0, 1.0)
    else:
        actions = applied = jax.random.categorical(own, heads).astype(jnp.int32)
    log_probs, _ = log_prob_and_entropy(params, obs, actions)
    return Decision(actions, applied, log_probs, value(params, obs)), key


def advantages(setting: Setting, round_: Storage, last_value: jax.Array) -> jax.Array:
    """Generalised advantage estimation; as in CleanRL, a truncated episode is one that has ended."""

    def backwards(carry: tuple[jax.Array, jax.Array], row: Any) -> tuple[Any, jax.Array]:
        advantage, next_value = carry
        reward, end, own_value = row
        alive = 1.0 - end
        delta = reward + setting.gamma * next_value * alive - own_value
        advantage = delta + setting.gamma * setting.gae_lambda * alive * advantage
        return (advantage, own_value), advantage

    rows = (round_.rewards, round_.ends.astype(jnp.float32), round_.values)
    _, found = jax.lax.scan(backwards, (jnp.zeros_like(last_value), last_value), rows, reverse=True)
    return found


def loss(params: Params, batch: Any) -> tuple[jax.Array, jax.Array]:
    obs, actions, old_log_probs, advantage, returns = batch
    log_probs, entropy = log_prob_and_entropy(params, obs, actions)
    log_ratio = log_probs - old_log_probs
    ratio = jnp.exp(log_ratio)
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    gain = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * advantage).mean()
    value_loss = jnp.mean((value(params, obs) - returns) ** 2)
    return VALUE * value_loss - gain - ENTROPY * entropy, jnp.mean((ratio - 1) - log_ratio)


def make_update(setting: Setting) -> tuple[Callable[[Params], Any], Callable[..., Any]]:
    """The optimiser's initial state, and a whole update as one compiled program."""
    optimiser = optax.chain(optax.clip_by_global_norm(MAX_GRADIENT), optax.adam(setting.learning_rate, eps=1e-5))
    count = setting.batch // setting.minibatch

    def minibatch(carry: Any, batch: Any) -> Any:
        params, state = carry
        (found, kl), gradient = jax.value_and_grad(loss, has_aux=True)(params, batch)
        steps, state = optimiser.update(gradient, state, params)
        return (optax.apply_updates(params, steps), state), (found, kl)

    def update(params: Params, state: Any, round_: Storage, last_obs: jax.Array, key: jax.Array) -> Any:
        advantage = advantages(setting, round_, value(params, last_obs))
        data = (round_.obs, round_.actions, round_.log_probs, advantage, advantage + round_.values)
        flat = jax.tree.map(lambda leaf: leaf.reshape(setting.batch, *leaf.shape[2:]), data)

        def epoch(carry: Any, own: jax.Array) -> Any:
            order = jax.random.permutation(own, setting.batch)
            parts = jax.tree.map(lambda leaf: leaf[order].reshape(count, setting.minibatch, *leaf.shape[1:]), flat)
            return jax.lax.scan(minibatch, carry, parts)

        (params, state), metrics = jax.lax.scan(epoch, (params, state), jax.random.split(key, setting.epochs))
        return params, state, jax.tree.map(jnp.mean, metrics)

    return optimiser.init, jax.jit(update)
