// What one kind of work costs, learnt while doing it.
#pragma once

#include <algorithm>
#include <atomic>

namespace raceway {

class Meter {
 public:
  // Nanoseconds per environment.
  double cost_ns() const { return cost_ns_.load(std::memory_order_relaxed); }

  // The share of its time that the work is on the CPU: low for environments that wait for something.
  double busy() const { return busy_.load(std::memory_order_relaxed); }

  // The first calls meet cold caches, so at first the cheapest counts.
  bool trained() const { return samples_.load(std::memory_order_relaxed) >= kTraining; }

  // Threads may overwrite each other's sample: an estimate can bear it. One that was taken off its CPU meanwhile must
  // not count for much.
  void add_cost(double ns) {
    const int samples = samples_.load(std::memory_order_relaxed);
    if (samples < kTraining) {
      samples_.store(samples + 1, std::memory_order_relaxed);
      if (samples == 0 || ns < cost_ns()) cost_ns_.store(ns, std::memory_order_relaxed);
      return;
    }
    cost_ns_.store(cost_ns() + (std::min(ns, 4 * std::max(cost_ns(), 1.0)) - cost_ns()) / 8, std::memory_order_relaxed);
  }

  // Reading a thread's CPU time is a system call: only for work that is long beside it, and not each time.
  bool wants_busy() {
    const unsigned asked = asked_.load(std::memory_order_relaxed);
    asked_.store(asked + 1, std::memory_order_relaxed);
    return !trained() || (cost_ns() > 1'000 && asked % 16 == 0);
  }
  void add_busy(double share) { busy_.store(busy() + (share - busy()) / 4, std::memory_order_relaxed); }

 private:
  static constexpr int kTraining = 4;

  std::atomic<double> cost_ns_{0.0};
  std::atomic<double> busy_{1.0};
  std::atomic<int> samples_{0};
  std::atomic<unsigned> asked_{0};
};

}  // namespace raceway
