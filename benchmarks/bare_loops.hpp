// The limit that pools and rollouts are measured against: environments stepped in a plain loop, one thread per CPU,
// each with its own share of them from beginning to end. No pool, no batches, nothing shared.
#pragma once

#include <algorithm>

#include "adapter.hpp"
#include "policy.hpp"
#include "table_loop.hpp"

namespace raceway {

// The environments of one thread, with rows of their own.
template <class Env>
class BareShare {
 public:
  BareShare(const typename Adapter<Env>::Configuration& configuration, const BareRun& run, std::size_t begin,
            std::size_t end)
      : run_(run),
        begin_(begin),
        randoms_(end - begin),
        steps_(end - begin),
        rewards_(end - begin),
        terminated_(end - begin),
        truncated_(end - begin) {
    envs_.reserve(end - begin);
    for (std::size_t i = begin; i < end; ++i) envs_.push_back(Adapter<Env>::made(configuration.config));
    if (envs_.empty()) return;  // more threads than environments
    obs_.resize(envs_.size() * Adapter<Env>::obs_size(envs_[0]));
    for (const auto& column : configuration.info_views) info_.emplace_back(envs_.size() * bytes_of(column));
    for (auto& column : info_) info_columns_.push_back(column.data());
    for (std::size_t i = 0; i < envs_.size(); ++i) {
      const std::uint32_t seed = run.seed + static_cast<std::uint32_t>(begin + i);
      randoms_[i] = seeded({&seed, 1});
      Random random(randoms_[i]);
      Adapter<Env>::restart(envs_[i], random, kFallbacks.data());
    }
  }

  [[gnu::flatten]] void loop() {
    if (envs_.empty()) return;
    const auto* actions = static_cast<const typename Env::Action*>(run_.actions);
    for (std::size_t step = 0; step < run_.num_steps; ++step) {
      const std::size_t size = Adapter<Env>::action_size(envs_[0]);
      const auto* row = actions + (step * run_.num_envs + begin_) * size;
      for (std::size_t i = 0; i < envs_.size(); ++i) advance(i, row + i * size);
      asm volatile("" ::: "memory");  // every step's rows are written, as a pool's are
    }
  }

 private:
  static constexpr auto kFallbacks = Adapter<Env>::fallbacks();

  void advance(std::size_t i, const typename Env::Action* action) {
    Random random(randoms_[i]);
    if (terminated_[i] || truncated_[i]) {
      Adapter<Env>::restart(envs_[i], random, kFallbacks.data());
      steps_[i] = 0;
      rewards_[i] = 0.0;
      terminated_[i] = truncated_[i] = 0;
    } else {
      const Step result = envs_[i].step(action, random);
      rewards_[i] = result.reward;
      terminated_[i] = result.terminated;
      truncated_[i] = ++steps_[i] == run_.limit;
    }
    envs_[i].observe(obs_.data() + i * Adapter<Env>::obs_size(envs_[i]));
    if constexpr (requires(InfoRow target) { envs_[i].info(target); }) {
      envs_[i].info(InfoRow(info_columns_.data(), i));
    }
  }

  const BareRun run_;
  const std::size_t begin_;
  std::vector<Env> envs_;
  std::vector<raceway_random> randoms_;
  std::vector<std::int64_t> steps_;
  std::vector<typename Env::Scalar> obs_;
  std::vector<double> rewards_;
  std::vector<std::uint8_t> terminated_, truncated_;
  std::vector<std::vector<char>> info_;
  std::vector<void*> info_columns_;
};

// The same environments driven by a policy, a few at a time through all steps, as a rollout does it. Actions are drawn
// and values computed; nothing is kept but the last rows. Episodes are reset within the step.
template <class Env>
class BarePolicyShare {
 public:
  BarePolicyShare(const typename Adapter<Env>::Configuration& configuration, const BareRun& run, const Network& network,
                  std::size_t begin, std::size_t end)
      : run_(run),
        network_(network),
        begin_(begin),
        pass_(network.shape()),
        keys_(network.shape(), run.seed),
        randoms_(end - begin),
        steps_(end - begin),
        rewards_(end - begin) {
    envs_.reserve(end - begin);
    for (std::size_t i = begin; i < end; ++i) envs_.push_back(Adapter<Env>::made(configuration.config));
    if (envs_.empty()) return;
    obs_.resize(kMostRows * Adapter<Env>::obs_size(envs_[0]));
    actions_.resize(Adapter<Env>::action_size(envs_[0]));
    const Column& action = configuration.spaces.action;
    low_ = action.low;
    high_ = action.high;
    for (const auto& column : configuration.info_views) info_.emplace_back(kMostRows * bytes_of(column));
    for (auto& column : info_) info_columns_.push_back(column.data());
    for (std::size_t i = 0; i < envs_.size(); ++i) {
      const std::uint32_t seed = run.seed + static_cast<std::uint32_t>(begin + i);
      randoms_[i] = seeded({&seed, 1});
      Random random(randoms_[i]);
      Adapter<Env>::restart(envs_[i], random, kFallbacks.data());
    }
  }

  [[gnu::flatten]] void loop() {
    for (std::size_t first = 0; first < envs_.size(); first += kMostRows) {
      const std::size_t count = std::min(kMostRows, envs_.size() - first);
      for (std::size_t row = 0; row < count; ++row) show(first, row);
      for (std::size_t step = 0; step < run_.num_steps; ++step) {
        infer(first, count, step);
        for (std::size_t row = 0; row < count; ++row) advance(first, row);
        asm volatile("" ::: "memory");
      }
    }
  }

 private:
  using Action = typename Env::Action;
  static constexpr auto kFallbacks = Adapter<Env>::fallbacks();

  [[gnu::noinline]] void infer(std::size_t first, std::size_t count, std::size_t step) {
    const std::size_t size = Adapter<Env>::obs_size(envs_[0]);
    for (std::size_t row = 0; row < count; ++row) pass_.encode(network_, row, obs_.data() + row * size);
    pass_.forward(network_, count, true);
    pass_.sample(network_, count, keys_, static_cast<std::uint32_t>(begin_ + first), static_cast<std::uint32_t>(step),
                 false, nullptr);
  }

  void advance(std::size_t first, std::size_t row) {
    const std::size_t i = first + row;
    Random random(randoms_[i]);
    const bool real = network_.shape().kind == ActionKind::kGaussian;
    for (std::size_t j = 0; j < actions_.size(); ++j) {
      actions_[j] = real ? static_cast<Action>(pass_.reals(row)[j]) : static_cast<Action>(pass_.choices(row)[j]);
      if (real && !low_.empty()) {
        actions_[j] = std::clamp(actions_[j], static_cast<Action>(low_[j]), static_cast<Action>(high_[j]));
      }
    }
    const Step result = envs_[i].step(actions_.data(), random);
    rewards_[i] = result.reward;
    if (++steps_[i] == run_.limit || result.terminated) {
      Adapter<Env>::restart(envs_[i], random, kFallbacks.data());
      steps_[i] = 0;
    }
    show(first, row);
  }

  void show(std::size_t first, std::size_t row) {
    const Env& env = envs_[first + row];
    env.observe(obs_.data() + row * Adapter<Env>::obs_size(env));
    if constexpr (requires(InfoRow target) { env.info(target); }) env.info(InfoRow(info_columns_.data(), row));
  }

  const BareRun run_;
  const Network& network_;
  const std::size_t begin_;
  Pass pass_;
  ActionKeys keys_;
  std::vector<Env> envs_;
  std::vector<raceway_random> randoms_;
  std::vector<std::int64_t> steps_;
  std::vector<double> rewards_, low_, high_;
  std::vector<typename Env::Scalar> obs_;
  std::vector<Action> actions_;
  std::vector<std::vector<char>> info_;
  std::vector<void*> info_columns_;
};

// Seconds for num_envs * num_steps steps; an episode that ended is reset by its next step, as in a pool.
template <class Env>
double bare_loop(const Arguments& arguments, const BareRun& run) {
  const typename Adapter<Env>::Configuration configuration(arguments);
  return seconds_side_by_side(
      run, [&](std::size_t begin, std::size_t end) { return BareShare<Env>(configuration, run, begin, end); });
}

// The same with the policy's actions instead of given ones.
template <class Env>
double bare_policy_loop(const Arguments& arguments, const BareRun& run, const Network& network) {
  const typename Adapter<Env>::Configuration configuration(arguments);
  return seconds_side_by_side(run, [&](std::size_t begin, std::size_t end) {
    return BarePolicyShare<Env>(configuration, run, network, begin, end);
  });
}

}  // namespace raceway
