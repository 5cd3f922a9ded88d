// Policy and rollout as Python sees them: a description and arrays in, arrays filled. What they do is in core/rollout.
#include "bound_rollout.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <set>

#include "../machine.hpp"
#include "../tasks.hpp"
#include "arrays.hpp"
#include "describe.hpp"
#include "interpreter.hpp"

namespace raceway::python {
namespace {

nb::object entry(const nb::dict& from, const char* key, const char* where) {
  if (!from.contains(key)) throw nb::key_error((std::string(where) + " has no '" + key + "'.").c_str());
  return nb::borrow(from[key]);
}

template <class T>
T entry_as(const nb::dict& from, const char* key, const char* where) {
  return nb::cast<T>(entry(from, key, where));
}

std::vector<LayerShape> layers_of(const nb::dict& layout, const char* part) {
  std::vector<LayerShape> layers;
  for (const nb::handle each : entry(layout, part, "the policy's layout")) {
    const auto layer = nb::cast<nb::dict>(each);
    const auto number = [&](const char* key) { return entry_as<std::size_t>(layer, key, "a layer of the policy"); };
    layers.push_back({number("weights"), number("bias"), number("inputs"), number("outputs")});
  }
  return layers;
}

void read_action(const nb::dict& action, PolicyShape& shape) {
  const char* where = "the policy's action";
  const auto kind = entry_as<std::string>(action, "kind", where);
  if (kind == "categorical") {
    shape.kind = ActionKind::kCategorical;
    shape.nvec = entry_as<std::vector<std::size_t>>(action, "nvec", where);
    shape.action_size = shape.nvec.size();
  } else if (kind == "gaussian") {
    shape.kind = ActionKind::kGaussian;
    shape.action_size = entry_as<std::size_t>(action, "size", where);
    shape.log_std = entry_as<std::size_t>(action, "log_std", where);
  } else if (kind == "bernoulli") {
    shape.kind = ActionKind::kBernoulli;
    shape.action_size = entry_as<std::size_t>(action, "size", where);
  } else {
    throw nb::value_error(("no kind of action '" + kind + "'. Use 'categorical', 'gaussian' or 'bernoulli'.").c_str());
  }
}

PolicyShape shape_of(const nb::dict& layout) {
  PolicyShape shape;
  for (const nb::handle each : entry(layout, "inputs", "the policy's layout")) {
    const auto input = nb::cast<nb::dict>(each);
    const auto kind = entry_as<std::string>(input, "kind", "an input of the policy");
    if (kind != "box" && kind != "discrete") {
      throw nb::value_error(("no kind of input '" + kind + "'. Use 'box' or 'discrete'.").c_str());
    }
    const bool discrete = kind == "discrete";
    shape.inputs.push_back({discrete, entry_as<std::size_t>(input, discrete ? "n" : "size", "an input of the policy")});
  }
  shape.trunk = layers_of(layout, "trunk");
  shape.actor = layers_of(layout, "actor");
  shape.critic = layers_of(layout, "critic");
  const auto activation = entry_as<std::string>(layout, "activation", "the policy's layout");
  if (activation != "tanh" && activation != "relu") {
    throw nb::value_error(("no activation '" + activation + "'. Use 'tanh' or 'relu'.").c_str());
  }
  shape.activation = activation == "tanh" ? Activation::kTanh : Activation::kRelu;
  read_action(entry_as<nb::dict>(layout, "action", "the policy's layout"), shape);
  return shape;
}

std::size_t length_of(nb::handle array) {
  const Py_ssize_t length = PyObject_Length(array.ptr());
  if (length < 0) throw nb::python_error();
  return static_cast<std::size_t>(length);
}

void encode(Pass& pass, const Network& network, const float* obs, std::size_t first, std::size_t count) {
  const std::size_t size = network.shape().num_inputs();
  for (std::size_t row = 0; row < count; ++row) {
    if (!pass.encode(network, row, obs + (first + row) * size)) {
      throw nb::value_error(("row " + std::to_string(first + row) + " of obs is outside its space.").c_str());
    }
  }
}

}  // namespace

BoundPolicy::BoundPolicy(const nb::dict& layout) : policy_(std::make_shared<Policy>(shape_of(layout))) {}

void BoundPolicy::load(nb::handle params, nb::handle mean, nb::handle rate) {
  if (mean.is_none() != rate.is_none()) {
    throw nb::value_error("mean and rate go together: give both, or None for both.");
  }
  const std::size_t count = length_of(params);
  const auto floats = [](nb::handle array, std::size_t size, const char* name) {
    if (array.is_none()) return static_cast<const float*>(nullptr);
    return static_cast<const float*>(memory_of(array, RACEWAY_FLOAT32, std::vector{size}, name, false));
  };
  const float* numbers = floats(params, count, "params");
  const float* means = floats(mean, num_scaled(), "mean");
  const float* rates = floats(rate, num_scaled(), "rate");
  policy_->load({numbers, count}, means, rates);
}

std::shared_ptr<const Network> BoundPolicy::loaded() const {
  std::shared_ptr<const Network> network = policy_->network();
  if (!network) throw StateError("the policy has no weights yet. Call load() first.");
  return network;
}

const float* BoundPolicy::rows_of(nb::handle obs, std::size_t rows) const {
  return static_cast<const float*>(
      memory_of(obs, RACEWAY_FLOAT32, std::vector{rows, policy_->shape().num_inputs()}, "obs", false));
}

void BoundPolicy::act(nb::handle obs, nb::handle actions, nb::handle log_probs, nb::handle values, std::uint64_t seed,
                      std::uint32_t first_env, std::uint32_t step, bool greedy, nb::handle mask) const {
  const std::shared_ptr<const Network> network = loaded();
  const PolicyShape& shape = policy_->shape();
  const std::size_t rows = length_of(obs), size = shape.action_size, logits = shape.num_logits();
  const bool is_real = shape.kind == ActionKind::kGaussian;
  const auto floats = [rows](nb::handle array, const char* name) {
    return static_cast<float*>(memory_of(array, RACEWAY_FLOAT32, std::vector{rows}, name, true));
  };
  const float* from = rows_of(obs, rows);
  void* chosen =
      memory_of(actions, is_real ? RACEWAY_FLOAT32 : RACEWAY_INT32, std::vector{rows, size}, "actions", true);
  float *logs = floats(log_probs, "log_probs"), *worth = floats(values, "values");
  const std::uint8_t* allowed = nullptr;
  if (!mask.is_none()) {
    if (is_real) throw nb::value_error("an action mask was given for real numbers, of which none can be forbidden.");
    allowed = static_cast<const std::uint8_t*>(memory_of(mask, RACEWAY_BOOL, std::vector{rows, logits}, "mask", false));
  }
  const ActionKeys keys(shape, seed);
  Pass pass(shape);
  for (std::size_t first = 0; first < rows; first += kMostRows) {
    const std::size_t count = std::min(kMostRows, rows - first);
    encode(pass, *network, from, first, count);
    pass.forward(*network, count, true);
    pass.sample(*network, count, keys, first_env + static_cast<std::uint32_t>(first), step, greedy,
                allowed ? allowed + first * logits : nullptr);
    for (std::size_t row = 0; row < count; ++row) {
      logs[first + row] = pass.log_prob(row);
      worth[first + row] = pass.value(row);
    }
    if (is_real) {
      std::copy_n(pass.reals(0), count * size, static_cast<float*>(chosen) + first * size);
    } else {
      std::copy_n(pass.choices(0), count * size, static_cast<std::int32_t*>(chosen) + first * size);
    }
  }
}

void BoundPolicy::value(nb::handle obs, nb::handle values) const {
  const std::shared_ptr<const Network> network = loaded();
  const std::size_t rows = length_of(obs);
  const float* from = rows_of(obs, rows);
  auto* worth = static_cast<float*>(memory_of(values, RACEWAY_FLOAT32, std::vector{rows}, "values", true));
  Pass pass(policy_->shape());
  for (std::size_t first = 0; first < rows; first += kMostRows) {
    const std::size_t count = std::min(kMostRows, rows - first);
    encode(pass, *network, from, first, count);
    pass.forward(*network, count, false);
    for (std::size_t row = 0; row < count; ++row) worth[first + row] = pass.value(row);
  }
}

// One array per leaf of an observation.
std::vector<void*> BoundRollout::leaves(const nb::dict& buffers, std::size_t num_steps) const {
  const raceway_layout& layout = rollout_->pool().layout();
  const auto given = nb::cast<std::vector<nb::object>>(entry(buffers, "obs", "buffers"));
  if (given.size() != layout.num_obs) {
    throw nb::value_error(("buffers['obs'] has " + std::to_string(given.size()) + " arrays: an observation has " +
                           std::to_string(layout.num_obs) + " leaves.")
                              .c_str());
  }
  std::vector<void*> result;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const raceway_column& column = layout.obs[i];
    std::vector<std::size_t> sizes{num_steps + 1, rollout_->pool().settings().num_envs};
    for (std::int32_t axis = 0; axis < column.ndim; ++axis) {
      sizes.push_back(static_cast<std::size_t>(column.shape[axis]));
    }
    const auto dtype = column.space == RACEWAY_DISCRETE ? RACEWAY_INT32 : RACEWAY_FLOAT32;
    result.push_back(memory_of(given[i], dtype, sizes, "buffers['obs'][" + std::to_string(i) + "]", true));
  }
  return result;
}

RolloutArrays BoundRollout::arrays(const nb::dict& buffers, std::size_t num_steps) const {
  static const std::set<std::string> kNames{"obs",         "actions",         "rewards",         "terminated",
                                            "truncated",   "log_probs",       "values",          "final_values",
                                            "action_mask", "episode_returns", "episode_lengths", "info_means"};
  for (const auto& [key, value] : buffers) {
    const auto name = nb::cast<std::string>(key);
    if (kNames.count(name) == 0) throw nb::value_error(("a rollout has no buffer '" + name + "'.").c_str());
  }
  const std::size_t envs = rollout_->pool().settings().num_envs;
  const PolicyShape& shape = rollout_->shape();
  const auto memory = [&](const char* name, std::int32_t dtype, std::vector<std::size_t> sizes) {
    return memory_of(entry(buffers, name, "buffers"), dtype, sizes, "buffers['" + std::string(name) + "']", true);
  };
  const auto floats = [&](const char* name, std::size_t steps) {
    return static_cast<float*>(memory(name, RACEWAY_FLOAT32, {steps, envs}));
  };
  const auto flags = [&](const char* name) {
    return static_cast<std::uint8_t*>(memory(name, RACEWAY_BOOL, {num_steps, envs}));
  };
  RolloutArrays result;
  result.obs = leaves(buffers, num_steps);
  const auto number = shape.kind == ActionKind::kGaussian ? RACEWAY_FLOAT32 : RACEWAY_INT32;
  std::vector<std::size_t> action_sizes{num_steps, envs};
  if (rollout_->pool().layout().action.ndim > 0) action_sizes.push_back(shape.action_size);
  result.actions = memory("actions", number, action_sizes);
  result.rewards = floats("rewards", num_steps);
  result.terminated = flags("terminated");
  result.truncated = flags("truncated");
  result.log_probs = floats("log_probs", num_steps);
  result.values = floats("values", num_steps + 1);
  result.final_values = floats("final_values", num_steps);
  if (buffers.contains("action_mask") && !buffers["action_mask"].is_none()) {
    result.action_mask =
        static_cast<std::uint8_t*>(memory("action_mask", RACEWAY_BOOL, {num_steps, envs, shape.num_logits()}));
  }
  result.episode_returns = floats("episode_returns", num_steps);
  result.episode_lengths = static_cast<std::int32_t*>(memory("episode_lengths", RACEWAY_INT32, {num_steps, envs}));
  if (buffers.contains("info_means") && !buffers["info_means"].is_none()) {
    result.info_means = static_cast<double*>(memory("info_means", RACEWAY_FLOAT64, {info_names().size()}));
  }
  return result;
}

void BoundRollout::collect(const nb::dict& buffers, std::size_t num_steps, std::uint64_t seed, std::uint64_t first_step,
                           bool greedy, std::uint32_t first_env) {
  Pool& pool = rollout_->pool();
  const Pool::Yielding yielding(pool);
  const Pool::Turn turn(pool, true, true);
  bound_.recover();
  RolloutCall call{
      arrays(buffers, num_steps), num_steps, seed, static_cast<std::uint32_t>(first_step), first_env, greedy};
  const Pool::Poll poll = signals_of_main_thread();
  bool completed = false;
  try {
    const Unlocked unlocked;
    completed = rollout_->collect(call, poll);
  } catch (const std::exception&) {
    if (!PyErr_Occurred()) throw;  // after Ctrl-C that comes first
  }
  if (pool.unfinished()) bound_.hold(buffers, rollout_);
  if (completed) return;
  if (PyErr_Occurred()) throw nb::python_error();
  throw ClosedError("the pool was closed while a rollout was under way.");
}

void bind_rollout(nb::module_& module) {
  nb::class_<BoundPolicy>(module, "Policy")
      .def(nb::init<const nb::dict&>(), nb::arg("layout"))
      .def("load", &BoundPolicy::load, nb::arg("params"), nb::arg("mean").none() = nb::none(),
           nb::arg("rate").none() = nb::none())
      .def("act", &BoundPolicy::act, nb::arg("obs"), nb::arg("actions"), nb::arg("log_probs"), nb::arg("values"),
           nb::arg("seed"), nb::arg("first_env"), nb::arg("step"), nb::arg("greedy"), nb::arg("mask").none())
      .def("value", &BoundPolicy::value, nb::arg("obs"), nb::arg("values"))
      .def_prop_ro("num_params", &BoundPolicy::num_params)
      .def_prop_ro("num_scaled", &BoundPolicy::num_scaled);

  nb::class_<BoundRollout>(module, "Rollout")
      .def(nb::init<BoundPool&, const BoundPolicy&>(), nb::arg("pool"), nb::arg("policy"), nb::keep_alive<1, 2>())
      .def("collect", &BoundRollout::collect, nb::arg("buffers"), nb::arg("num_steps"), nb::arg("seed"),
           nb::arg("first_step"), nb::arg("greedy") = false, nb::arg("first_env") = 0)
      .def("set_group_size", &BoundRollout::set_group_size, nb::arg("size"))
      .def_prop_ro("info_names", &BoundRollout::info_names)
      .def_prop_ro("has_action_mask", &BoundRollout::has_action_mask);
}

}  // namespace raceway::python
