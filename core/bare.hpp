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

// Seconds for num_envs * num_steps steps; an episode that ended is reset by its next step, as in a pool.
template <class Env>
double bare_loop(const Arguments& arguments, const BareRun& run) {
  const typename Adapter<Env>::Configuration configuration(arguments);
  const auto fallbacks = Adapter<Env>::fallbacks();
  const auto* actions = static_cast<const typename Env::Action*>(run.actions);
  const auto threads = static_cast<std::size_t>(run.num_threads);
  std::vector<Clock::time_point> starts(threads), ends(threads);
  std::barrier together(static_cast<std::ptrdiff_t>(threads));

  const auto loop = [&](std::size_t thread) {
    const std::size_t begin = run.num_envs * thread / threads, count = run.num_envs * (thread + 1) / threads - begin;
    std::vector<Env> envs(count, Env(configuration.config));
    std::vector<raceway_random> randoms;
    std::vector<std::int64_t> steps(count, 0);
    std::vector<typename Env::Scalar> obs(count * Env::kObsSize);
    std::vector<double> rewards(count);
    std::vector<std::uint8_t> terminated(count), truncated(count);
    std::vector<std::vector<char>> info;
    std::vector<void*> info_columns;
    for (const auto& column : configuration.info_views) info.emplace_back(count * bytes_of(column));
    for (auto& column : info) info_columns.push_back(column.data());
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t seed = run.seed + static_cast<std::uint32_t>(begin + i);
      randoms.push_back(seeded({&seed, 1}));
      Random random(randoms[i]);
      envs[i].reset(random, fallbacks.data());
    }
    together.arrive_and_wait();
    starts[thread] = Clock::now();
    for (std::size_t step = 0; step < run.num_steps; ++step) {
      const auto* row = actions + (step * run.num_envs + begin) * Env::kActionSize;
      for (std::size_t i = 0; i < count; ++i) {
        Random random(randoms[i]);
        if (terminated[i] || truncated[i]) {
          envs[i].reset(random, fallbacks.data());
          steps[i] = 0;
          rewards[i] = 0.0;
          terminated[i] = truncated[i] = 0;
        } else {
          const Step result = envs[i].step(row + i * Env::kActionSize, random);
          rewards[i] = result.reward;
          terminated[i] = result.terminated;
          truncated[i] = ++steps[i] == run.limit;
        }
        envs[i].observe(obs.data() + i * Env::kObsSize);
        if constexpr (requires(InfoRow target) { envs[i].info(target); }) {
          envs[i].info(InfoRow(info_columns.data(), i));
        }
      }
      asm volatile("" ::: "memory");  // every step's rows are written, as a pool's are
    }
    ends[thread] = Clock::now();
  };

  std::vector<std::thread> others;
  for (std::size_t i = 1; i < threads; ++i) others.emplace_back(loop, i);
  loop(0);
  for (auto& other : others) other.join();
  const auto start = *std::min_element(starts.begin(), starts.end());
  const auto end = *std::max_element(ends.begin(), ends.end());
  return std::chrono::duration<double>(end - start).count();
}

}  // namespace raceway
