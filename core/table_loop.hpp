// Environments stepped in a plain loop through their table, one thread per CPU, each with its own share of them from
// beginning to end: the limit that `raceway check` shows beside the native lane. No pool, no batches, nothing shared.
#pragma once

#include <algorithm>
#include <barrier>
#include <system_error>
#include <thread>
#include <vector>

#include "signal.hpp"
#include "table.h"

namespace raceway {

struct BareRun {
  std::size_t num_envs = 1, num_steps = 1;
  int num_threads = 1;
  std::int64_t limit = 0;
  std::uint32_t seed = 0;
  const void* actions = nullptr;  // [step, env, ...]
  const char* source = nullptr;   // the header that the environments are from, if that is a user's own
};

// Seconds that shares of the environments take, one thread each, made by `share(begin, end)`.
template <class MakeShare>
double seconds_side_by_side(const BareRun& run, MakeShare make_share) {
  const auto threads = static_cast<std::size_t>(run.num_threads);
  std::vector<Clock::time_point> starts(threads), ends(threads);
  std::barrier together(static_cast<std::ptrdiff_t>(threads));
  const auto work = [&](std::size_t thread) {
    auto share = make_share(run.num_envs * thread / threads, run.num_envs * (thread + 1) / threads);
    together.arrive_and_wait();
    starts[thread] = Clock::now();
    share.loop();
    ends[thread] = Clock::now();
  };
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < threads; ++i) {
    try {
      others.emplace_back(work, i);
    } catch (const std::system_error&) {  // there are as many threads as the system allows
      for (std::size_t missing = i; missing <= threads; ++missing) together.arrive_and_drop();  // the caller among them
      throw;
    }
  }
  work(0);
  others.clear();
  const auto start = *std::min_element(starts.begin(), starts.end());
  const auto end = *std::max_element(ends.begin(), ends.end());
  return std::chrono::duration<double>(end - start).count();
}

// Seconds for num_envs * num_steps steps; an episode that ended is reset by its next step, as in a pool.
double table_loop(const raceway_table& table, const void* configuration, const BareRun& run);

}  // namespace raceway
