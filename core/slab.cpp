#include "slab.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <new>
#include <thread>

namespace raceway {

Memory::Memory(std::size_t size, bool touch)
    : size_(round_up(size > 0 ? size : 1, static_cast<std::size_t>(sysconf(_SC_PAGESIZE)))) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (touch ? MAP_POPULATE : 0);
  void* address = mmap(nullptr, size_, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (address == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(address);
}

Memory::~Memory() {
  munmap(data_, size_);
}

void spread(const std::vector<const Memory*>& memories, const std::vector<int>& cpus) {
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    threads.emplace_back([&memories, &cpus, i] {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(static_cast<std::size_t>(cpus[i]), &set);
      sched_setaffinity(0, sizeof set, &set);
      for (const Memory* memory : memories) {
        const std::size_t begin = memory->size() * i / cpus.size(), end = memory->size() * (i + 1) / cpus.size();
        std::memset(memory->data() + begin, 0, end - begin);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

Slab::~Slab() {
  for (Block* block : free_) delete block;
}

// The block used last comes first: it is the one still in the cache.
Block* Slab::take() {
  Block* block = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      block = free_.back();
      free_.pop_back();
    }
  }
  if (!block) block = new Block(block_size_, touch_);
  block->slab = shared_from_this();
  return block;
}

void Slab::give_back(Block* block) {
  const std::shared_ptr<Slab> slab = std::move(block->slab);
  {
    const std::lock_guard lock(slab->mutex_);
    if (slab->free_.size() < kKept) {
      slab->free_.push_back(block);
      return;
    }
  }
  delete block;
}

}  // namespace raceway
