// One host's arena as its writer sees it: which slots there are, which are free, where a new one fits.
//
// A writer never waits for a slot. It takes the one freed last that fits, for its pages are there and in the cache;
// else it makes another. Pages of slots that nobody has had use for lately go back to the system when they are many.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "shared.hpp"

namespace raceway {

class Arena {
 public:
  Arena(std::shared_ptr<const Shared> shared, std::size_t host);

  // A slot of at least `size` bytes, whose pages are there.
  Hold take(std::size_t size);

  // Another hold on the slot that these bytes lie in, if they lie in one of this arena. The caller holds it too.
  Hold holding(const void* data, std::size_t size);

  std::uint64_t offset_of(const void* data) const;
  std::size_t slots();   // that there are, free or not
  std::size_t extent();  // up to where the arena was ever used

 private:
  struct Slot {
    std::uint64_t offset, size;
    std::uint64_t last_taken;
    bool has_pages;
  };

  std::uint32_t find(std::size_t size);
  void collect_freed();
  std::optional<std::uint32_t> reuse(std::size_t size);
  std::uint32_t make(std::size_t size);
  std::optional<std::uint64_t> carve(std::size_t size);
  void drop_idle(std::uint64_t last_taken_before);
  void give_up(std::uint64_t offset, std::uint64_t size);
  void populate(std::uint32_t slot);

  const std::shared_ptr<const Shared> shared_;
  const std::size_t host_;
  ArenaControl& control_;

  std::mutex mutex_;
  std::vector<Slot> slots_;                                 // by number, from first_ on
  std::uint32_t first_;                                     // the ones before it were a predecessor's
  std::vector<std::uint32_t> spare_;                        // numbers without a slot
  std::map<std::uint64_t, std::uint32_t> by_offset_;        // all slots
  std::map<std::size_t, std::vector<std::uint32_t>> idle_;  // free ones by size, the one freed last at the back
  std::map<std::uint64_t, std::uint64_t> gaps_;             // without pages: offset and size, never two side by side
  std::size_t idle_bytes_ = 0, all_bytes_ = 0;
  std::uint64_t takes_ = 0;
};

// Maps the pages of a slot that this process has not read before, all at once. `known` is that of its last reading.
void populate_for_reading(const Shared& shared, std::size_t host, std::uint32_t slot, std::uint32_t& known);

}  // namespace raceway
