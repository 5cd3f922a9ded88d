// Waiting that spins for a moment and then sleeps, on one 32-bit word: a futex, which works across processes too.
#pragma once

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <type_traits>

namespace raceway {

using Clock = std::chrono::steady_clock;

// How often a thread that waits for long looks whether it should go on waiting.
constexpr std::chrono::milliseconds kPollEvery{50};

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
    return std::chrono::nanoseconds(usual_ <= 1.5 * most_ && resting_ == 0 ? static_cast<std::int64_t>(most_) : 0);
  }

  // Where there may be more threads than CPUs, a waiter offers its CPU to others while it spins. On idle ones that
  // costs nothing, and it need not be woken, which takes longest then. On busy ones sleepers are woken quickly, and it
  // is who offers its CPU that may wait long to have it back: it sleeps through the next waits, ever more of them.
  void set_polite(bool polite) { polite_ = polite; }
  bool polite() const { return polite_; }
  void lost_cpu() {
    resting_ = next_rest_;
    next_rest_ = std::min(2 * next_rest_, kLongestRest);
  }

  // A single long wait, as between two phases of a program, does not count for much.
  void learn(std::chrono::nanoseconds wait) {
    usual_ += (std::min(static_cast<double>(wait.count()), 4 * most_) - usual_) / 4;
    if (resting_ > 0) {
      resting_ -= 1;
    } else {
      next_rest_ = std::max(next_rest_ - 1, kShortestRest);
    }
  }

 private:
  static constexpr int kShortestRest = 16, kLongestRest = 4096;

  double most_, usual_ = 0.0;
  bool polite_ = false;
  int resting_ = 0, next_rest_ = kShortestRest;  // waits to sleep through
};

// A counter that threads wait on. Read `now()`, look for work, and only then wait for it to change: no raise is lost.
// It works between processes too, where it lies in memory that they share: zero bytes are a valid one. A process that
// is killed while it waits stays counted, until `forget_waiters`: who waits on one signal should live in one process.
class Signal {
 public:
  std::uint32_t now() const { return count_.load(std::memory_order_acquire); }

  void raise() {
    count_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) != 0) wake(INT32_MAX);
  }

  // For the only one who uses it, before it waits: those who waited before are gone.
  void forget_waiters() {
    sleepers_.store(0, std::memory_order_relaxed);
    spinners_.store(0, std::memory_order_relaxed);
  }

  // For work that one waiter can do: wakes one of those who sleep, unless somebody spins. A spinner that gives up in
  // this moment looks at the count again before it sleeps.
  void raise_one() {
    count_.fetch_add(1, std::memory_order_seq_cst);
    if (spinners_.load(std::memory_order_seq_cst) == 0 && sleepers_.load(std::memory_order_seq_cst) != 0) wake(1);
  }

  // Returns false if `deadline` passed first.
  bool wait(std::uint32_t seen, Patience& patience, Clock::time_point deadline = Clock::time_point::max()) {
    const auto start = Clock::now();
    spinners_.fetch_add(1, std::memory_order_seq_cst);
    const bool spun = spin(seen, start, patience);
    spinners_.fetch_sub(1, std::memory_order_seq_cst);
    const bool changed = spun || sleep_until(seen, deadline);
    patience.learn(Clock::now() - start);
    return changed;
  }

  // The same without spinning. Returns false if `deadline` passed first.
  bool sleep_until(std::uint32_t seen, Clock::time_point deadline) {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    bool changed = count_.load(std::memory_order_seq_cst) != seen;
    while (!changed && sleep(seen, deadline)) changed = now() != seen;
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
    return changed || now() != seen;
  }

 private:
  bool spin(std::uint32_t seen, Clock::time_point start, Patience& patience) const {
    const auto end = start + patience.now();
    if (end == start) return now() != seen;  // somebody may wait for this CPU
    for (auto before = start;;) {
      for (int i = 0; i < 32; ++i) {
        if (now() != seen) return true;
        pause_cpu();
      }
      if (before >= end) return false;
      if (patience.polite()) sched_yield();
      const auto after = Clock::now();
      if (patience.polite() && after - before > kLost) patience.lost_cpu();
      before = after;
    }
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

  // Not the private kind of futex: the sleepers may be in another process.
  void wake(int most) { syscall(SYS_futex, word(), FUTEX_WAKE, most, nullptr, nullptr, 0); }

  static constexpr std::chrono::microseconds kLost{2000};  // a turn of somebody else takes milliseconds

  std::uint32_t* word() { return reinterpret_cast<std::uint32_t*>(&count_); }

  std::atomic<std::uint32_t> count_{0};
  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<std::uint32_t> spinners_{0};
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free && sizeof(Signal) == 12);
static_assert(std::is_standard_layout_v<Signal> && std::is_trivially_destructible_v<Signal>);

}  // namespace raceway
