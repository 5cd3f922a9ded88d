// Waiting that spins for a moment and then sleeps, on one 32-bit word: a futex, which works across processes too.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

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

// How long one waiter spins. It learns: spinning that paid off is worth trying longer, spinning in vain is cut short.
class Patience {
 public:
  explicit Patience(std::chrono::nanoseconds most) : most_(most.count()), now_(most.count()) {}

  std::chrono::nanoseconds now() const { return std::chrono::nanoseconds(now_); }
  void paid_off() { now_ = now_ * 2 < most_ ? now_ * 2 : most_; }
  void in_vain() { now_ = now_ / 2 > most_ / 64 ? now_ / 2 : most_ / 64; }

 private:
  std::int64_t most_, now_;
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
    if (spin(seen, patience)) return true;
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    bool changed = count_.load(std::memory_order_seq_cst) != seen;
    while (!changed && sleep(seen, deadline)) changed = now() != seen;
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
    return changed || now() != seen;
  }

 private:
  bool spin(std::uint32_t seen, Patience& patience) const {
    if (patience.now().count() == 0) return now() != seen;
    const auto end = Clock::now() + patience.now();
    do {
      for (int i = 0; i < 32; ++i) {
        if (now() != seen) {
          patience.paid_off();
          return true;
        }
        pause_cpu();
      }
    } while (Clock::now() < end);
    patience.in_vain();
    return false;
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
