// How many things are done, for one who waits until so many are: whoever brings the count there is told to wake it, and
// nobody before. It lies in memory that processes share: zero bytes are a valid one.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

namespace raceway {

class Tally {
 public:
  // Whether the one who waits now has what it wants, or had it before.
  bool add(std::int64_t done) {
    return done_.fetch_add(done, std::memory_order_seq_cst) + done >= wanted_.load(std::memory_order_seq_cst);
  }

  // From now on it takes so many. Look whether they are there already after this, and only then wait.
  void want(std::int64_t wanted) { wanted_.store(wanted, std::memory_order_seq_cst); }

  void take(std::int64_t done) { done_.fetch_sub(done, std::memory_order_seq_cst); }
  void clear() { done_.store(0, std::memory_order_seq_cst); }
  std::int64_t done() const { return done_.load(std::memory_order_seq_cst); }

  // The number of what is to be done: who sees it also sees all that was written before.
  void issue(std::int64_t number) { issued_.store(number, std::memory_order_release); }
  std::int64_t issued() const { return issued_.load(std::memory_order_acquire); }

 private:
  std::atomic<std::int64_t> done_{0}, wanted_{0}, issued_{0};
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free && sizeof(Tally) == 24);
static_assert(std::is_standard_layout_v<Tally> && std::is_trivially_destructible_v<Tally>);

}  // namespace raceway
