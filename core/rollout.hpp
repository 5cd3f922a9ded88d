// Free-running collection: the policy lives in the worker. A thread takes a few environments and does all their steps
// alone: observe, infer, act, write each number to its place in the caller's arrays. Which thread that was, and how
// many environments it stepped together, cannot be seen in the result.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "policy.hpp"
#include "pool.hpp"

namespace raceway {

// The policy's own output is at fault.
struct PolicyError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Where a rollout of T steps of N environments goes: C-contiguous arrays, time first.
struct RolloutArrays {
  std::vector<void*> obs;    // a leaf each, [T+1, N, ...]: float32, or int32 for a discrete one
  void* actions = nullptr;   // [T, N, K] as the policy drew them: int32, or float32 for a Gaussian
  float* rewards = nullptr;  // [T, N], as the next three
  std::uint8_t* terminated = nullptr;
  std::uint8_t* truncated = nullptr;
  float* log_probs = nullptr;
  float* values = nullptr;              // [T+1, N]
  float* final_values = nullptr;        // [T, N]: of the last observation of episodes that were cut off, 0 elsewhere
  std::uint8_t* action_mask = nullptr;  // [T, N, logits]; null: masks are not looked at
  float* episode_returns = nullptr;     // [T, N], 0 where none ended; as the lengths
  std::int32_t* episode_lengths = nullptr;
  double* info_means = nullptr;  // one number per name of info_names()
};

struct RolloutCall {
  RolloutArrays arrays;
  std::size_t num_steps = 1;
  std::uint64_t seed = 0;
  std::uint32_t first_step = 0;  // counts the steps of the whole run
  std::uint32_t first_env = 0;   // the number of the pool's environment 0 in the whole run
  bool greedy = false;
};

class Rollout {
 public:
  // Refuses a policy that does not fit the pool's observations and actions.
  Rollout(Pool& pool, std::shared_ptr<Policy> policy);
  Rollout(const Rollout&) = delete;
  Rollout& operator=(const Rollout&) = delete;

  Pool& pool() const { return pool_; }
  const PolicyShape& shape() const { return policy_->shape(); }
  // The info entries of one number.
  const std::vector<std::string>& info_names() const { return info_names_; }
  bool has_action_mask() const { return mask_column_.has_value(); }

  // Goes on from where the environments are. False if `poll` was, and then the arrays hold nothing of use.
  bool collect(const RolloutCall& call, const Pool::Poll& poll = nullptr);

  // For tests and measurements; 0: whatever seems best.
  void set_group_size(std::size_t size) { forced_group_size_ = size; }

 private:
  // What one thread needs to step a group: rows for its environments and memory for the policy.
  struct Desk {
    Desk(const RowLayout& rows, const PolicyShape& shape, std::size_t action_bytes)
        : memory(rows.bytes()), actions(kMostRows * action_bytes), batch(rows.bind(memory.data())), pass(shape) {
      batch.actions = actions.data();
      batch.autoreset = RACEWAY_SAME_STEP;
    }

    Memory memory, actions;
    raceway_batch batch;
    Pass pass;
  };
  struct Failure {
    std::size_t step, env;
    std::string text;
    bool of_policy;
  };

  void check_observations() const;
  void check_actions() const;
  std::size_t group_size() const;
  void run_group(std::size_t first, std::size_t count);
  bool run_steps(Desk& desk, std::size_t first, std::size_t count);
  void fetch_places(std::size_t place) const;
  bool observe(Desk& desk, std::size_t t, std::size_t first, std::size_t count, const void* obs);
  bool act(Desk& desk, std::size_t t, std::size_t first, std::size_t count);
  bool step(Desk& desk, std::size_t t, std::size_t first, std::size_t count);
  bool value_final(Desk& desk, std::size_t t, std::size_t first, std::size_t count);
  void note_episodes(const Desk& desk, std::size_t t, std::size_t first, std::size_t count) const;
  void add_infos(const Desk& desk, std::size_t first, std::size_t count);
  void write_actions(Desk& desk, std::size_t count) const;
  std::string why_not_finite(std::size_t t, std::size_t env) const;
  void mean_infos() const;
  void note_failure(Failure failure);
  std::unique_ptr<Desk> take_desk();

  Pool& pool_;
  const std::shared_ptr<Policy> policy_;
  const RowLayout rows_;
  std::size_t obs_size_ = 0;
  std::vector<std::string> info_names_;
  std::vector<std::size_t> info_columns_;
  std::optional<std::size_t> mask_column_;
  std::size_t forced_group_size_ = 0;

  // Of the call under way.
  RolloutCall call_;
  std::shared_ptr<const Network> network_;
  std::optional<ActionKeys> keys_;
  std::vector<double> info_sums_;  // [N, names]
  std::optional<Failure> failure_;

  std::mutex mutex_;
  std::vector<std::unique_ptr<Desk>> desks_;
  std::atomic<double> step_ns_{0.0};  // of one environment with its share of the policy; 0: not known
};

}  // namespace raceway
