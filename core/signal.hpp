// Waiting that spins for a moment and then sleeps, on one 32-bit word: a futex, which works across processes too.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>

namespace raceway {

using Clock = std::chrono::steady_clock;

inline void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Whether one waiter spins before it sleeps. It learns how long its waits are: spinning is for those that it outlasts.
class Patience {
 public:
  explicit Patience(std::chrono::nanoseconds most) : most_(static_cast<double>(most.count())) {}

  std::chrono::nanoseconds now() const {
    // Waking from sleep takes about half of `most`, and is part of the waits that were slept through.
    return std::chrono::nanoseconds(usual_ <= 1.5 * most_ ? static_cast<std::int64_t>(most_) : 0);
  }

  // A single long wait, as between two phases of a program, does not count for much.
  void learn(std::chrono::nanoseconds wait) {
    usual_ += (std::min(static_cast<double>(wait.count()), 4 * most_) - usual_) / 4;
  }

 private:
  double most_, usual_ = 0.0;
};

// A counter that threads wait on. Read `now()`, look for work, and only then wait for it to change: no raise is lost.
class Signal {
 public:
  std::uint32_t now() const { return count_.load(std::memory_order_acquire); }

  void raise() {
    count_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) != 0) wake_all();
  }

  // Returns false if `deadline` passed first.
  bool wait(std::uint32_t seen, Patience& patience, Clock::time_point deadline = Clock::time_point::max()) {
    const auto start = Clock::now();
    const bool changed = spin(seen, start + patience.now()) || sleep_until(seen, deadline);
    patience.learn(Clock::now() - start);
    return changed;
  }

 private:
  bool spin(std::uint32_t seen, Clock::time_point end) const {
    do {
      for (int i = 0; i < 32; ++i) {
        if (now() != seen) return true;
        pause_cpu();
      }
    } while (Clock::now() < end);
    return false;
  }

  bool sleep_until(std::uint32_t seen, Clock::time_point deadline) {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    bool changed = count_.load(std::memory_order_seq_cst) != seen;
    while (!changed && sleep(seen, deadline)) changed = now() != seen;
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
    return changed || now() != seen;
  }

  // False when the deadline has passed.
  bool sleep(std::uint32_t seen, Clock::time_point deadline) {
    timespec left{};
    timespec* timeout = nullptr;
    if (deadline != Clock::time_point::max()) {
      const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - Clock::now()).count();
      if (ns <= 0) return false;
      left = {ns / 1'000'000'000, ns % 1'000'000'000};
      timeout = &left;
    }
    syscall(SYS_futex, word(), FUTEX_WAIT, seen, timeout, nullptr, 0);
    return true;
  }

  void wake_all() { syscall(SYS_futex, word(), FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0); }

  std::uint32_t* word() { return reinterpret_cast<std::uint32_t*>(&count_); }

  std::atomic<std::uint32_t> count_{0};
  std::atomic<std::uint32_t> sleepers_{0};
};

}  // namespace raceway
