// Ranges of environments waiting for one worker. The worker takes from the front; others steal from the back.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

#include "slab.hpp"

namespace raceway {

struct Range {
  std::size_t first = 0, count = 0;
  explicit operator bool() const { return count > 0; }
};

class alignas(kCacheLine) Lane {
 public:
  // A lane never holds more ranges than there are environments.
  void reserve(std::size_t ranges) { ring_.resize(ranges); }

  void put(Range range) {
    const std::lock_guard lock(mutex_);
    ring_[(head_ + length_) % ring_.size()] = range;
    length_ += 1;
    left_.store(left() + range.count, std::memory_order_release);
  }

  // Cheap environments in halves of what is left, but at least `least`, so that they are soon shared out and still
  // end evenly. Where one is worth a chunk of its own, one: the rest can be stolen.
  Range take(std::size_t least) {
    if (left() == 0) return {};
    const std::lock_guard lock(mutex_);
    if (length_ == 0) return {};
    Range& front = ring_[head_];
    const std::size_t count = std::min(front.count, least == 1 ? 1 : std::max(least, left() / 2));
    const Range taken{front.first, count};
    front = {front.first + count, front.count - count};
    if (front.count == 0) {
      head_ = (head_ + 1) % ring_.size();
      length_ -= 1;
    }
    left_.store(left() - count, std::memory_order_release);
    return taken;
  }

  // Half of what is left, from the end that the owner reaches last.
  Range steal(std::size_t least) {
    if (left() == 0) return {};
    const std::lock_guard lock(mutex_);
    if (length_ == 0) return {};
    Range& back = ring_[(head_ + length_ - 1) % ring_.size()];
    const std::size_t count = std::min(back.count, std::max(least, left() / 2));
    back.count -= count;
    const Range taken{back.first + back.count, count};
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
  std::size_t left() const { return left_.load(std::memory_order_acquire); }

  std::mutex mutex_;
  std::vector<Range> ring_;
  std::size_t head_ = 0, length_ = 0;
  std::atomic<std::size_t> left_{0};  // environments, read without the lock to pass by empty lanes
};

}  // namespace raceway
