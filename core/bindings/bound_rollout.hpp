#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../policy.hpp"
#include "../rollout.hpp"
#include "bound_pool.hpp"

namespace raceway::python {

namespace nb = nanobind;

class BoundPolicy {
 public:
  explicit BoundPolicy(const nb::dict& layout);

  void load(nb::handle params, nb::handle mean, nb::handle rate);
  // One row of `obs` per environment, its leaves one after the other. What is not finite is written as it is.
  void act(nb::handle obs, nb::handle actions, nb::handle log_probs, nb::handle values, std::uint64_t seed,
           std::uint32_t first_env, std::uint32_t step, bool greedy, nb::handle mask) const;
  void value(nb::handle obs, nb::handle values) const;
  std::size_t num_params() const { return policy_->shape().num_params(); }
  std::size_t num_scaled() const { return policy_->shape().num_boxed(); }
  const std::shared_ptr<Policy>& native() const { return policy_; }

 private:
  std::shared_ptr<const Network> loaded() const;
  const float* rows_of(nb::handle obs, std::size_t rows) const;

  std::shared_ptr<Policy> policy_;
};

class BoundRollout {
 public:
  // The pool must outlive it: the binding sees to that.
  BoundRollout(BoundPool& pool, const BoundPolicy& policy)
      : bound_(pool), rollout_(std::make_shared<Rollout>(pool.native(), policy.native())) {}

  void collect(const nb::dict& buffers, std::size_t num_steps, std::uint64_t seed, std::uint64_t first_step,
               bool greedy, std::uint32_t first_env);
  const std::vector<std::string>& info_names() const { return rollout_->info_names(); }
  bool has_action_mask() const { return rollout_->has_action_mask(); }
  void set_group_size(std::size_t size) { rollout_->set_group_size(size); }

 private:
  std::vector<void*> leaves(const nb::dict& buffers, std::size_t num_steps) const;
  RolloutArrays arrays(const nb::dict& buffers, std::size_t num_steps) const;

  BoundPool& bound_;
  const std::shared_ptr<Rollout> rollout_;
};

void bind_rollout(nb::module_& module);

}  // namespace raceway::python
