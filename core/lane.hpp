// Ranges of environments waiting for one worker. The worker takes from the front; others steal from the back.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

#include "slab.hpp"

namespace raceway {

// Consecutive environments, and which of the owner's jobs is to be done on them.
struct Range {
  std::size_t first = 0, count = 0;
  int job = 0;
  explicit operator bool() const { return count > 0; }
};

class alignas(kCacheLine) Lane {
 public:
  void put(Range range) {
    const std::lock_guard lock(mutex_);
    if (length_ == ring_.size()) grow();
    ring_[(head_ + length_) % ring_.size()] = range;
    length_ += 1;
    left_.store(left() + range.count, std::memory_order_release);
  }

  // Cheap environments in halves of what is left, but at least `least_of` their job, so that they are soon shared out
  // and still end evenly. Where one is worth a chunk of its own, one: the rest can be stolen.
  template <class Least>
  Range take(Least least_of) {
    if (left() == 0) return {};
    const std::lock_guard lock(mutex_);
    if (length_ == 0) return {};
    Range& front = ring_[head_];
    const std::size_t least = least_of(front.job);
    const std::size_t count = std::min(front.count, least == 1 ? 1 : std::max(least, left() / 2));
    const Range taken{front.first, count, front.job};
    front = {front.first + count, front.count - count, front.job};
    if (front.count == 0) {
      head_ = (head_ + 1) % ring_.size();
      length_ -= 1;
    }
    left_.store(left() - count, std::memory_order_release);
    return taken;
  }

  // Half of what is left, from the end that the owner reaches last.
  template <class Least>
  Range steal(Least least_of) {
    if (left() == 0) return {};
    const std::lock_guard lock(mutex_);
    if (length_ == 0) return {};
    Range& back = ring_[(head_ + length_ - 1) % ring_.size()];
    const std::size_t count = std::min(back.count, std::max(least_of(back.job), left() / 2));
    back.count -= count;
    const Range taken{back.first + back.count, count, back.job};
    if (back.count == 0) length_ -= 1;
    left_.store(left() - count, std::memory_order_release);
    return taken;
  }

  // Forgets what nobody has taken; returns how many environments that were.
  std::size_t clear() {
    const std::lock_guard lock(mutex_);
    const std::size_t dropped = left();
    length_ = 0;
    left_.store(0, std::memory_order_release);
    return dropped;
  }

 private:
  void grow() {
    std::rotate(ring_.begin(), ring_.begin() + static_cast<std::ptrdiff_t>(head_), ring_.end());
    head_ = 0;
    ring_.resize(ring_.size() * 2);
  }

  std::size_t left() const { return left_.load(std::memory_order_acquire); }

  std::mutex mutex_;
  std::vector<Range> ring_ = std::vector<Range>(8);
  std::size_t head_ = 0, length_ = 0;
  std::atomic<std::size_t> left_{0};  // environments, read without the lock to pass by empty lanes
};

}  // namespace raceway
