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

// An array of numbers, or structs of them, in such memory.
template <class T>
class MemoryOf {
 public:
  MemoryOf(std::size_t count, bool touch) : memory_(count * sizeof(T), touch), count_(count) {}

  T* data() const { return reinterpret_cast<T*>(memory_.data()); }
  T& operator[](std::size_t i) const { return data()[i]; }
  T* begin() const { return data(); }
  T* end() const { return data() + count_; }
  const Memory& memory() const { return memory_; }

 private:
  Memory memory_;
  std::size_t count_;
};

// Touches the i-th part of each memory from a thread on the i-th CPU, whose NUMA node its pages then come to.
void spread(const std::vector<const Memory*>& memories, const std::vector<int>& cpus);

class Slab;

// One block on loan. It goes back when its holder is done, however long that takes: the slab lives until then.
struct Block {
  Block(std::size_t size, bool touch) : memory(size, touch) {}

  Memory memory;
  std::shared_ptr<Slab> slab;  // set while on loan
};

class Slab : public std::enable_shared_from_this<Slab> {
 public:
  explicit Slab(std::size_t block_size, bool touch = true) : block_size_(block_size), touch_(touch) {
    free_.reserve(kKept);
  }
  ~Slab();
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  Block* take();
  static void give_back(Block* block);

 private:
  // A caller may hold thousands of blocks for a while; what it returns beyond these is freed.
  static constexpr std::size_t kKept = 8;

  const std::size_t block_size_;
  const bool touch_;
  std::mutex mutex_;
  std::vector<Block*> free_;
};

}  // namespace raceway
