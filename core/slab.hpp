// Memory blocks of one size that are handed out, come back and are handed out again: no allocation per step.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace raceway {

inline constexpr std::size_t kCacheLine = 64;

constexpr std::size_t round_up(std::size_t size, std::size_t to) {
  return (size + to - 1) / to * to;
}

// Zeroed, page-aligned memory whose pages are there before it is first used; or, on a machine with several NUMA nodes,
// come to the node of the thread that first writes them.
class Memory {
 public:
  explicit Memory(std::size_t size, bool touch = true);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::byte* data_;
  std::size_t size_;
};

class Slab;

// One block on loan. It goes back when its holder is done, however long that takes: the slab lives until then.
struct Block {
  explicit Block(std::size_t size) : memory(size) {}

  Memory memory;
  std::shared_ptr<Slab> slab;  // set while on loan
};

class Slab : public std::enable_shared_from_this<Slab> {
 public:
  explicit Slab(std::size_t block_size) : block_size_(block_size) { free_.reserve(kKept); }
  ~Slab();
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  Block* take();
  static void give_back(Block* block);

 private:
  // A caller may hold thousands of blocks for a while; what it returns beyond these is freed.
  static constexpr std::size_t kKept = 8;

  const std::size_t block_size_;
  std::mutex mutex_;
  std::vector<Block*> free_;
};

}  // namespace raceway
