#include "arena.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace raceway {
namespace {

constexpr std::size_t kLeastSlot = 4096;
constexpr std::size_t kHuge = std::size_t{2} << 20;
constexpr std::size_t kIdleKept = std::size_t{256} << 20;
constexpr std::uint64_t kLately = 256;  // messages

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

// Eight sizes per doubling, so that messages of almost the same size share slots.
std::size_t slot_size(std::size_t wanted) {
  const std::size_t size = std::max(wanted, kLeastSlot);
  return round_up(size, std::max(page_size(), std::bit_floor(size) / 8));
}

std::string megabytes(std::size_t bytes) {
  return std::to_string(round_up(bytes, std::size_t{1} << 20) >> 20) + " MB";
}

}  // namespace

Arena::Arena(std::shared_ptr<const Shared> shared, std::size_t host)
    : shared_(std::move(shared)), host_(host), control_(shared_->arena_control(host)), first_(control_.slots.load()) {}

Hold Arena::take(std::size_t size) {
  std::uint32_t slot = 0;
  bool has_pages = true;
  Hold hold;
  {
    const std::lock_guard lock(mutex_);
    slot = find(slot_size(size));
    hold = Hold(shared_, host_, slot);
    hold.entry().holds.store(1, std::memory_order_relaxed);
    slots_[slot - first_].last_taken = ++takes_;
    has_pages = slots_[slot - first_].has_pages;
  }
  if (!has_pages) populate(slot);
  return hold;
}

Hold Arena::holding(const void* data, std::size_t size) {
  const std::uint64_t offset = offset_of(data);
  if (offset >= shared_->arena_size() || size == 0) return {};
  const std::lock_guard lock(mutex_);
  auto after = by_offset_.upper_bound(offset);
  if (after == by_offset_.begin()) return {};
  const auto& [begin, slot] = *std::prev(after);
  if (offset + size > begin + slots_[slot - first_].size) return {};
  Hold hold(shared_, host_, slot);
  hold.add();
  return hold;
}

std::uint64_t Arena::offset_of(const void* data) const {
  return reinterpret_cast<std::uintptr_t>(data) - reinterpret_cast<std::uintptr_t>(shared_->arena(host_));
}

std::size_t Arena::slots() {
  const std::lock_guard lock(mutex_);
  return slots_.size() - spare_.size();
}

std::size_t Arena::extent() {
  return control_.end.load(std::memory_order_relaxed);
}

std::uint32_t Arena::find(std::size_t size) {
  collect_freed();
  if (const auto slot = reuse(size)) return *slot;
  return make(size);
}

// From the top of the stack down is from the newest to the oldest, and the newest is to be last.
void Arena::collect_freed() {
  if (control_.freed.load(std::memory_order_relaxed) == 0) return;
  std::vector<std::uint32_t> found;
  for (std::uint32_t next = control_.freed.exchange(0, std::memory_order_acquire); next != 0;) {
    const std::uint32_t slot = next - 1;
    next = shared_->slot(host_, slot).next_freed.load(std::memory_order_relaxed);
    if (slot >= first_) found.push_back(slot);
  }
  for (auto slot = found.rbegin(); slot != found.rend(); ++slot) {
    const std::size_t size = slots_[*slot - first_].size;
    idle_[size].push_back(*slot);
    idle_bytes_ += size;
  }
}

std::optional<std::uint32_t> Arena::reuse(std::size_t size) {
  const auto fit = idle_.lower_bound(size);
  if (fit == idle_.end() || fit->first > 2 * size) return std::nullopt;
  const std::uint32_t slot = fit->second.back();
  fit->second.pop_back();
  idle_bytes_ -= fit->first;
  if (fit->second.empty()) idle_.erase(fit);
  return slot;
}

std::uint32_t Arena::make(std::size_t size) {
  if (idle_bytes_ > all_bytes_ - idle_bytes_ + kIdleKept && takes_ > kLately) drop_idle(takes_ - kLately);
  auto offset = carve(size);
  if (!offset) {
    drop_idle(UINT64_MAX);
    offset = carve(size);
  }
  const bool numbers_left = !spare_.empty() || first_ + slots_.size() < shared_->max_slots();
  if (!offset || !numbers_left) {
    if (offset) give_up(*offset, size);
    throw std::runtime_error(
        "no room for a message of " + megabytes(size) + ": " + megabytes(all_bytes_ - idle_bytes_) + " in " +
        std::to_string(slots_.size() - spare_.size()) +
        " messages are still held by their readers. Let go of arrays that were received (copy what "
        "is to stay), or send less ahead.");
  }
  std::uint32_t slot = 0;
  if (!spare_.empty()) {
    slot = spare_.back();
    spare_.pop_back();
    slots_[slot - first_] = {*offset, size, 0, false};
  } else {
    slot = first_ + static_cast<std::uint32_t>(slots_.size());
    slots_.push_back({*offset, size, 0, false});
    control_.slots.store(slot + 1, std::memory_order_relaxed);
  }
  by_offset_[*offset] = slot;
  all_bytes_ += size;
  SlotEntry& entry = shared_->slot(host_, slot);
  entry.offset = *offset;
  entry.size = size;
  entry.generation.fetch_add(1, std::memory_order_relaxed);
  return slot;
}

// The first gap that is large enough, else the end of what is in use. Large slots begin where a huge page can.
std::optional<std::uint64_t> Arena::carve(std::size_t size) {
  const std::size_t align = size >= kHuge ? kHuge : page_size();
  for (const auto& [begin, length] : gaps_) {
    const std::uint64_t offset = round_up(begin, align), end = begin + length;
    if (offset + size > end) continue;
    const std::uint64_t gap = begin;
    gaps_.erase(gap);
    if (offset > gap) gaps_[gap] = offset - gap;
    if (offset + size < end) gaps_[offset + size] = end - offset - size;
    return offset;
  }
  const std::uint64_t end = control_.end.load(std::memory_order_relaxed), offset = round_up(end, align);
  if (offset + size > shared_->arena_size()) return std::nullopt;
  if (offset > end) give_up(end, offset - end);
  control_.end.store(offset + size, std::memory_order_relaxed);
  return offset;
}

// Free slots become gaps, their pages go back to the system, and neighbours become one.
void Arena::drop_idle(std::uint64_t last_taken_before) {
  for (auto each = idle_.begin(); each != idle_.end();) {
    auto& [size, slots] = *each;
    const auto dropped = std::stable_partition(slots.begin(), slots.end(), [&](std::uint32_t slot) {
      return slots_[slot - first_].last_taken >= last_taken_before;
    });
    for (auto slot = dropped; slot != slots.end(); ++slot) {
      const std::uint64_t offset = slots_[*slot - first_].offset;
      madvise(shared_->arena(host_) + offset, size, MADV_REMOVE);
      by_offset_.erase(offset);
      spare_.push_back(*slot);
      idle_bytes_ -= size;
      all_bytes_ -= size;
      give_up(offset, size);
    }
    slots.erase(dropped, slots.end());
    each = slots.empty() ? idle_.erase(each) : std::next(each);
  }
}

void Arena::give_up(std::uint64_t offset, std::uint64_t size) {
  auto after = gaps_.lower_bound(offset);
  if (after != gaps_.end() && offset + size == after->first) {
    size += after->second;
    after = gaps_.erase(after);
  }
  if (after != gaps_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      before->second += size;
      return;
    }
  }
  gaps_[offset] = size;
}

// Without this the first write to each page is an interrupt of its own. Kernels before 5.14 do not know the call.
void Arena::populate(std::uint32_t slot) {
  Slot copy{};
  {
    const std::lock_guard lock(mutex_);
    copy = slots_[slot - first_];
  }
  if (madvise(shared_->arena(host_) + copy.offset, copy.size, MADV_POPULATE_WRITE) != 0 && errno != EINVAL) {
    throw std::runtime_error("no memory for a message of " + megabytes(copy.size) + ": " + std::strerror(errno) +
                             ". Send less ahead, or let go of arrays that were received.");
  }
  const std::lock_guard lock(mutex_);
  slots_[slot - first_].has_pages = true;
}

void populate_for_reading(const Shared& shared, std::size_t host, std::uint32_t slot, std::uint32_t& known) {
  const SlotEntry& entry = shared.slot(host, slot);
  const std::uint32_t generation = entry.generation.load(std::memory_order_relaxed);
  if (generation == known) return;
  madvise(shared.arena(host) + entry.offset, entry.size, MADV_POPULATE_READ);  // where it fails, pages come one by one
  known = generation;
}

}  // namespace raceway
