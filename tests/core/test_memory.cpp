// Slab and RowLayout: where batches lie, and that their memory comes back.
#include <algorithm>
#include <cstring>
#include <set>
#include <thread>

#include "check.hpp"
#include "machine.hpp"
#include "rows.hpp"
#include "slab.hpp"

using namespace raceway;

namespace {

bool is_aligned(const void* address, std::size_t to) {
  return reinterpret_cast<std::uintptr_t>(address) % to == 0;
}

// Three bytes of observation, an info entry of one double and one of five bytes: nothing that is round by itself.
struct OddLayout {
  OddLayout() {
    layout.num_obs = 1;
    layout.obs = &obs;
    layout.action = discrete(2).view();
    layout.num_info = 2;
    layout.info = info;
  }
  const Column obs_column{"", RACEWAY_UINT8, {3}, RACEWAY_BOX, 0, {}, {}};
  const Column real = entry<double>("real"), bytes = entries<std::int8_t>("bytes", 5);
  const raceway_column obs = obs_column.view();
  const raceway_column info[2] = {real.view(), bytes.view()};
  raceway_layout layout{};
};

struct Span {
  const void* first;
  std::size_t bytes;
};

std::vector<Span> spans_of(const RowLayout& rows, const raceway_batch& batch, std::byte* base) {
  const std::size_t n = rows.rows();
  return {{batch.obs, 3 * n},
          {batch.reward, 8 * n},
          {batch.terminated, n},
          {batch.truncated, n},
          {batch.info[0], 8 * n},
          {batch.info[1], 5 * n},
          {batch.final_obs, 3 * n},
          {batch.final_info[0], 8 * n},
          {batch.final_info[1], 5 * n},
          {batch.episode_return, 8 * n},
          {batch.episode_length, 8 * n},
          {batch.episode_time, 8 * n},
          {rows.env_ids(base), 8 * n},
          {batch.info, 2 * sizeof(void*)},
          {batch.final_info, 2 * sizeof(void*)}};
}

constexpr RowLayout::Extras kAll{true, true, true};

}  // namespace

CASE("memory is zeroed, aligned to a page and never empty") {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{5000}}) {
    for (const bool touch : {false, true}) {
      const Memory memory(size, touch);
      CHECK(memory.size() >= std::max<std::size_t>(size, 1));
      CHECK(is_aligned(memory.data(), 4096));
      CHECK(std::all_of(memory.data(), memory.data() + memory.size(), [](std::byte b) { return b == std::byte{0}; }));
      std::memset(memory.data(), 0xff, memory.size());
    }
  }
}

CASE("memory that is spread over CPUs is touched to its last byte, also by more parts than CPUs") {
  Memory untouched(10'000, false), other(1, false);
  for (const std::size_t parts : {1U, 3U, 7U}) {
    std::memset(untouched.data(), 1, untouched.size());
    std::memset(other.data(), 1, other.size());
    spread({&untouched, &other}, std::vector<int>(parts, allowed_cpus().front()));
    CHECK(std::all_of(untouched.data(), untouched.data() + untouched.size(),
                      [](std::byte b) { return b == std::byte{0}; }));
    CHECK(std::all_of(other.data(), other.data() + other.size(), [](std::byte b) { return b == std::byte{0}; }));
  }
}

CASE("memory that cannot be had is bad_alloc") {
  CHECK_THROWS(std::bad_alloc, "", Memory(std::size_t{1} << 60));
}

CASE("a block that came back is handed out again, the last one first") {
  const auto slab = std::make_shared<Slab>(100);
  Block* first = slab->take();
  Block* second = slab->take();
  CHECK(first != second && first->memory.data() != second->memory.data());
  CHECK(is_aligned(first->memory.data(), kCacheLine));
  CHECK(first->memory.size() >= 100);
  Slab::give_back(first);
  Slab::give_back(second);
  CHECK_EQUAL(slab->take(), second);
  CHECK_EQUAL(slab->take(), first);
  Slab::give_back(first);
  Slab::give_back(second);
}

CASE("of many blocks that come back, eight are kept") {
  const auto slab = std::make_shared<Slab>(64);
  std::vector<Block*> blocks;
  for (int i = 0; i < 20; ++i) blocks.push_back(slab->take());
  CHECK_EQUAL(std::set<Block*>(blocks.begin(), blocks.end()).size(), blocks.size());
  const std::set<Block*> kept(blocks.begin(), blocks.begin() + 8);
  for (Block* block : blocks) Slab::give_back(block);
  std::vector<Block*> again;
  for (int i = 0; i < 8; ++i) again.push_back(slab->take());
  CHECK(std::set<Block*>(again.begin(), again.end()) == kept);
  for (Block* block : again) Slab::give_back(block);
}

CASE("a block outlives whoever held the slab") {
  auto slab = std::make_shared<Slab>(64);
  const std::weak_ptr<Slab> watched = slab;
  Block* kept = slab->take();
  Block* other = slab->take();
  Slab::give_back(other);
  slab.reset();
  CHECK(!watched.expired());
  std::memset(kept->memory.data(), 1, kept->memory.size());
  Slab::give_back(kept);
  CHECK(watched.expired());
}

CASE("threads take and give back blocks, and never two hold the same one") {
  const auto slab = std::make_shared<Slab>(sizeof(int));
  const auto borrow = [&](int mark) {
    for (int i = 0; i < 2000; ++i) {
      Block* block = slab->take();
      auto* value = reinterpret_cast<int*>(block->memory.data());
      *value = mark;
      std::this_thread::yield();
      CHECK_EQUAL(*value, mark);
      Slab::give_back(block);
    }
  };
  std::vector<std::thread> threads;
  for (int mark = 1; mark <= 4; ++mark) threads.emplace_back(borrow, mark);
  for (auto& thread : threads) thread.join();
}

CASE("columns do not overlap, begin on a cache line and end within the block") {
  const OddLayout odd;
  for (const std::size_t n : {std::size_t{1}, std::size_t{7}, std::size_t{64}, std::size_t{1000}}) {
    const RowLayout rows(odd.layout, n, kAll);
    const Memory memory(rows.bytes());
    auto spans = spans_of(rows, rows.bind(memory.data()), memory.data());
    std::sort(spans.begin(), spans.end(), [](const Span& left, const Span& right) { return left.first < right.first; });
    const auto* end = memory.data();
    for (const Span& span : spans) {
      const auto* first = static_cast<const std::byte*>(span.first);
      CHECK(first >= end);
      CHECK(is_aligned(first, kCacheLine));
      end = first + span.bytes;
    }
    CHECK(end <= memory.data() + rows.bytes());
  }
}

CASE("a batch without extras has null pointers for them") {
  const OddLayout odd;
  const RowLayout rows(odd.layout, 4, {});
  const Memory memory(rows.bytes());
  const raceway_batch batch = rows.bind(memory.data());
  CHECK(batch.final_obs == nullptr && batch.final_info == nullptr);
  CHECK(batch.episode_return == nullptr && batch.episode_length == nullptr && batch.episode_time == nullptr);
  CHECK(batch.reset_mask == nullptr && batch.options == nullptr && batch.actions == nullptr);
  CHECK(rows.bytes() < RowLayout(odd.layout, 4, kAll).bytes());
}

CASE("rows are copied between blocks of other lengths, and only those rows") {
  const OddLayout odd;
  const RowLayout from(odd.layout, 10, {true, true, false}), to(odd.layout, 4, kAll);
  const Memory source(from.bytes()), target(to.bytes());
  const raceway_batch read = from.bind(source.data()), written = to.bind(target.data());
  for (std::size_t i = 0; i < 10; ++i) {
    std::memset(static_cast<char*>(read.obs) + 3 * i, static_cast<int>(i), 3);
    read.reward[i] = static_cast<double>(i);
    read.truncated[i] = static_cast<std::uint8_t>(i);
    std::memset(static_cast<char*>(read.info[1]) + 5 * i, static_cast<int>(i), 5);
    std::memset(static_cast<char*>(read.final_obs) + 3 * i, static_cast<int>(i), 3);
    read.episode_length[i] = static_cast<std::int64_t>(i);
  }
  to.copy(target.data(), 1, from, source.data(), 5, 2);
  const std::vector<int> expected{0, 5, 6, 0};
  for (std::size_t row = 0; row < 4; ++row) {
    for (std::size_t k = 0; k < 3; ++k) {
      CHECK_EQUAL(static_cast<int>(static_cast<std::uint8_t*>(written.obs)[3 * row + k]), expected[row]);
      CHECK_EQUAL(static_cast<int>(static_cast<std::uint8_t*>(written.final_obs)[3 * row + k]), expected[row]);
    }
    CHECK_EQUAL(written.reward[row], static_cast<double>(expected[row]));
    CHECK_EQUAL(static_cast<int>(written.truncated[row]), expected[row]);
    CHECK_EQUAL(static_cast<int>(static_cast<std::int8_t*>(written.info[1])[5 * row + 4]), expected[row]);
    CHECK_EQUAL(written.episode_length[row], static_cast<std::int64_t>(expected[row]));
  }
  CHECK(written.info == to.bind(target.data()).info);  // the tables of pointers stay the block's own
  CHECK(written.info[0] > static_cast<void*>(target.data()));
}
