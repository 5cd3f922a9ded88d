// The memory that the processes of one program share: an inherited memfd, so that there is nothing to sweep.
//
//   header | a bell per host | a ring per ordered pair of hosts: where it stands, and its bytes
//          | per host: a table of slots | per host: an arena
//
// All of it is sparse. The ranges are huge, and a page is there once it is used. No locks: a process may be killed at
// any instruction, and all that can come of it is a slot that is never free again.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "signal.hpp"
#include "slab.hpp"

namespace raceway {

inline constexpr std::size_t kLine = 2 * kCacheLine;  // CPUs fetch lines in pairs

// How much address space each part has. 0: as much as is to be had.
struct SharedSizes {
  std::size_t ring = std::size_t{256} << 10;
  std::size_t slots = std::size_t{1} << 16;
  std::size_t arena = 0;
};

// Positions only grow; modulo the ring's size they are places in it.
struct RingControl {
  alignas(kLine) std::atomic<std::uint64_t> written;
  alignas(kLine) std::atomic<std::uint64_t> read;
  std::atomic<std::uint32_t> writer_waits;  // for room
};

// A piece of an arena. It is free when nobody holds it: no array of a reader, no lease or letter of the writer.
struct alignas(kCacheLine) SlotEntry {
  std::atomic<std::uint32_t> holds;
  std::atomic<std::uint32_t> next_freed;  // 1 + its number, 0: none
  std::atomic<std::uint32_t> generation;  // changes when other pages lie here
  std::uint64_t offset, size;             // within the arena
};

// What a successor of a killed writer must know to leave its slots alone.
struct ArenaControl {
  alignas(kLine) std::atomic<std::uint32_t> freed;  // a stack: whoever lets go last pushes, the writer takes it whole
  alignas(kLine) std::atomic<std::uint64_t> end;
  std::atomic<std::uint32_t> slots;
};

class Shared {
 public:
  // A memfd, closed on exec.
  static int create(std::size_t hosts, SharedSizes sizes = {});

  // `host`: the one whose arena may be written through this mapping; the others' are read-only. kAnyHost: all may.
  static constexpr std::size_t kAnyHost = SIZE_MAX;
  Shared(int fd, std::size_t host);
  ~Shared();
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  std::size_t hosts() const { return hosts_; }
  std::size_t ring_size() const { return ring_size_; }
  std::size_t arena_size() const { return arena_size_; }
  std::size_t max_slots() const { return max_slots_; }
  std::atomic<std::uint32_t>& aborted() const;

  Signal& bell(std::size_t host) const;
  RingControl& ring(std::size_t from, std::size_t to) const;
  std::byte* ring_data(std::size_t from, std::size_t to) const;
  ArenaControl& arena_control(std::size_t host) const;
  SlotEntry& slot(std::size_t host, std::size_t index) const;
  std::byte* arena(std::size_t host) const;

  // True in a child of fork(): what is held and counted here belongs to the parent.
  bool forked() const;

 private:
  template <class T>
  T& at(std::size_t offset) const {
    return *reinterpret_cast<T*>(base_ + offset);
  }

  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
  std::size_t hosts_ = 0, ring_size_ = 0, max_slots_ = 0, arena_size_ = 0;
  std::size_t rings_ = 0, ring_data_ = 0, tables_ = 0, arenas_ = 0;  // where each part begins
  int forks_ = 0;
};

// One count on a slot, from whichever process. The slot is pushed to its arena's freed ones when the last is gone.
// Letting go takes no lock and may happen in any thread.
class Hold {
 public:
  Hold() = default;
  // Takes over a count that was made before.
  Hold(std::shared_ptr<const Shared> shared, std::size_t host, std::uint32_t slot)
      : shared_(std::move(shared)), host_(host), slot_(slot) {}
  Hold(Hold&& other) noexcept : shared_(std::move(other.shared_)), host_(other.host_), slot_(other.slot_) {
    other.shared_ = nullptr;
  }
  Hold& operator=(Hold&& other) noexcept {
    std::swap(shared_, other.shared_);
    std::swap(host_, other.host_);
    std::swap(slot_, other.slot_);
    return *this;
  }
  ~Hold() {
    if (shared_) let_go();
  }

  explicit operator bool() const { return shared_ != nullptr; }
  std::uint32_t slot() const { return slot_; }
  SlotEntry& entry() const { return shared_->slot(host_, slot_); }
  std::byte* data() const { return shared_->arena(host_) + entry().offset; }

  void add() const { entry().holds.fetch_add(1, std::memory_order_relaxed); }  // a count for somebody else
  void pass_on() { shared_ = nullptr; }                                        // this one is somebody else's now

 private:
  void let_go();

  std::shared_ptr<const Shared> shared_;
  std::size_t host_ = 0;
  std::uint32_t slot_ = 0;
};

}  // namespace raceway
