// The limit that a pool is measured against: environments stepped in a plain loop, one thread per CPU, each with its
// own share of them from beginning to end. No pool, no batches, nothing shared.
#pragma once

#include <algorithm>
#include <barrier>
#include <span>
#include <thread>

#include "adapter.hpp"
#include "signal.hpp"

namespace raceway {

struct BareRun {
  std::size_t num_envs = 1, num_steps = 1;
  int num_threads = 1;
  std::int64_t limit = 0;
  std::uint32_t seed = 0;
  const void* actions = nullptr;  // [step, env, ...]
};

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
    for (std::size_t i = begin; i < end; ++i) envs_.emplace_back(configuration.config);
    if (envs_.empty()) return;  // more threads than environments
    obs_.resize(envs_.size() * Adapter<Env>::obs_size(envs_[0]));
    for (const auto& column : configuration.info_views) info_.emplace_back(envs_.size() * bytes_of(column));
    for (auto& column : info_) info_columns_.push_back(column.data());
    for (std::size_t i = 0; i < envs_.size(); ++i) {
      const std::uint32_t seed = run.seed + static_cast<std::uint32_t>(begin + i);
      randoms_[i] = seeded({&seed, 1});
      Random random(randoms_[i]);
      envs_[i].reset(random, kFallbacks.data());
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
      envs_[i].reset(random, kFallbacks.data());
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

// Seconds for num_envs * num_steps steps; an episode that ended is reset by its next step, as in a pool.
template <class Env>
double bare_loop(const Arguments& arguments, const BareRun& run) {
  const typename Adapter<Env>::Configuration configuration(arguments);
  const auto threads = static_cast<std::size_t>(run.num_threads);
  std::vector<Clock::time_point> starts(threads), ends(threads);
  std::barrier together(static_cast<std::ptrdiff_t>(threads));
  const auto work = [&](std::size_t thread) {
    BareShare<Env> share(configuration, run, run.num_envs * thread / threads, run.num_envs * (thread + 1) / threads);
    together.arrive_and_wait();
    starts[thread] = Clock::now();
    share.loop();
    ends[thread] = Clock::now();
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < threads; ++i) others.emplace_back(work, i);
  work(0);
  for (auto& other : others) other.join();
  const auto start = *std::min_element(starts.begin(), starts.end());
  const auto end = *std::max_element(ends.begin(), ends.end());
  return std::chrono::duration<double>(end - start).count();
}

}  // namespace raceway
