#include "guard.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "env.hpp"
#include "slab.hpp"

namespace raceway {
namespace {

// Wide enough for the usual mistakes. A sanitizer finds the others by itself, and would make wide ones slow.
#ifdef RACEWAY_GUARD
constexpr std::size_t kMargin = 1024;
#else
constexpr std::size_t kMargin = 16384;
#endif
constexpr std::byte kCanary{0xC5};
// What a row holds before it is written, and before it is written a second time: no number equals both.
constexpr std::byte kUnset{0xA9}, kUnsetAgain{0x56};

// Both by calls of the C library: loops over bytes take a sanitizer's build too long.
bool is_filled(const std::byte* bytes, std::size_t count, std::byte value) {
  return count == 0 || (bytes[0] == value && std::memcmp(bytes, bytes + 1, count - 1) == 0);
}

void fill(std::byte* bytes, std::size_t count, std::byte value) {
  if (count > 0) std::memset(bytes, static_cast<int>(value), count);
}

std::byte* shifted(const void* base, std::size_t bytes) {
  return static_cast<std::byte*>(const_cast<void*>(base)) + bytes;
}

// Memory between canaries.
class Fenced {
 public:
  explicit Fenced(std::size_t size) : size_(size), memory_(round_up(size, kCacheLine) + 2 * kMargin + kCacheLine) {
    fill(memory_.data(), memory_.size(), kCanary);
    const std::size_t odd = reinterpret_cast<std::uintptr_t>(memory_.data()) % kCacheLine;
    offset_ = (kCacheLine - odd) % kCacheLine + kMargin;
  }

  std::byte* data() { return memory_.data() + offset_; }
  std::size_t size() const { return size_; }
  bool overrun() { return !is_filled(data() + size_, kMargin, kCanary); }
  bool underrun() { return !is_filled(data() - kMargin, kMargin, kCanary); }
  // How many bytes behind the end the first one is that was written.
  std::size_t first_past_end() {
    const std::byte* end = data() + size_;
    const auto* wrong = std::find_if(end, end + kMargin, [](std::byte each) { return each != kCanary; });
    return static_cast<std::size_t>(wrong - end);
  }

 private:
  std::size_t size_, offset_ = 0;
  std::vector<std::byte> memory_;
};

}  // namespace

// The rows of one environment, each between canaries, and a batch of it alone. What only the adapter writes, such as
// rewards, stays where it is.
class Guard::Rows {
 public:
  Rows(const raceway_layout& layout, const raceway_batch& batch, std::size_t i, std::size_t stride)
      : layout_(layout), one(batch) {
    std::size_t obs_bytes = 0;
    for (std::size_t c = 0; c < layout.num_obs; ++c) obs_bytes += bytes_of(layout.obs[c]);
    pieces_.reserve(3 + 2 * layout.num_info);
    shift(i, stride);
    one.obs = add("observe()", nullptr, shifted(batch.obs, i * obs_bytes), obs_bytes);
    if (batch.final_obs) one.final_obs = add("observe()", nullptr, shifted(batch.final_obs, i * obs_bytes), obs_bytes);
    if (batch.actions) {
      const std::size_t bytes = bytes_of(layout.action);
      one.actions = add("step()", &layout.action, shifted(batch.actions, i * bytes), bytes);
      pieces_.back().is_input = true;
    }
    add_infos(batch.info, i, info_);
    add_infos(batch.final_info, i, final_info_);
    if (batch.info) one.info = info_.data();
    if (batch.final_info) one.final_info = final_info_.data();
    if (batch.info_present) one.info_present = info_present_.data();
    fill(obs().data(), obs().size(), kUnset);
  }

  Fenced& obs() { return pieces_[0].fenced; }
  std::size_t scalar_bytes() const { return size_of(layout_.obs[0].dtype); }

  std::string flaw() {
    for (Piece& piece : pieces_) {
      const bool past_end = piece.fenced.overrun();
      if (past_end || piece.fenced.underrun()) {
        return std::string(piece.writer) + " writes " + (past_end ? "past the end of " : "before the beginning of ") +
               name(piece) + (past_end ? ": " + entry(piece) + " was written" : "");
      }
      if (piece.is_input && std::memcmp(piece.fenced.data(), piece.original, piece.fenced.size()) != 0) {
        return std::string(piece.writer) + " changes its action, which it may only read";
      }
    }
    return "";
  }

  void copy_back() {
    for (Piece& piece : pieces_) {
      if (!piece.is_input) std::memcpy(piece.original, piece.fenced.data(), piece.fenced.size());
    }
  }

 private:
  struct Piece {
    const char* writer;
    const raceway_column* column;  // null: an observation
    std::byte* original;
    Fenced fenced;
    bool is_input = false;
  };

  std::byte* add(const char* writer, const raceway_column* column, std::byte* original, std::size_t bytes) {
    pieces_.push_back({writer, column, original, Fenced(bytes)});
    std::memcpy(pieces_.back().fenced.data(), original, bytes);
    return pieces_.back().fenced.data();
  }

  void add_infos(void* const* columns, std::size_t i, std::vector<void*>& places) {
    for (std::size_t c = 0; columns && c < layout_.num_info; ++c) {
      const std::size_t bytes = bytes_of(layout_.info[c]);
      places.push_back(add("info()", &layout_.info[c], shifted(columns[c], i * bytes), bytes));
    }
  }

  void shift(std::size_t i, std::size_t stride) {
    const auto move = [i](auto*& pointer) {
      if (pointer) pointer += i;
    };
    one.envs = shifted(one.envs, i * stride);
    move(one.random);
    move(one.episodes);
    move(one.records);
    move(one.reward);
    move(one.terminated);
    move(one.truncated);
    move(one.fault);
    move(one.episode_return);
    move(one.episode_length);
    move(one.episode_time);
    move(one.reset_mask);
    for (std::size_t c = 0; one.info_present && c < layout_.num_info; ++c) {
      info_present_.push_back(one.info_present[c] + i);
    }
  }

  std::string name(Piece& piece) const {
    if (piece.column == &layout_.action) return "its action, for which kActionSize is " + count(piece);
    if (piece.column) return std::string("column '") + piece.column->name + "', whose size is " + count(piece);
    return "its row, for which kObsSize is " + count(piece);
  }
  std::size_t entry_bytes(const Piece& piece) const {
    return piece.column ? size_of(piece.column->dtype) : scalar_bytes();
  }
  std::string count(const Piece& piece) const {
    return std::to_string(piece.fenced.size() / std::max<std::size_t>(entry_bytes(piece), 1));
  }
  std::string entry(Piece& piece) const {
    return "entry " + std::to_string((piece.fenced.size() + piece.fenced.first_past_end()) / entry_bytes(piece)) +
           ", counted from 0,";
  }

  const raceway_layout& layout_;
  std::vector<Piece> pieces_;
  std::vector<void*> info_, final_info_;
  std::vector<std::uint8_t*> info_present_;

 public:
  raceway_batch one;
};

Guard::Guard(const raceway_table& table, const raceway_layout& layout)
    : table_(table), layout_(layout), margin_(round_up(kMargin, table.env_align)) {}

void Guard::surround(std::byte* memory, std::size_t num_envs) const {
  for (std::size_t i = 0; i < num_envs; ++i) {
    std::byte* place = memory + i * stride();
    fill(place, margin_, kCanary);
    fill(place + margin_ + table_.env_size, margin_, kCanary);
  }
}

std::int64_t Guard::call(Call function, const raceway_batch& batch, std::size_t first, std::size_t count,
                         raceway_error* error, bool* outside) const {
  std::int64_t failed = -1;
  raceway_batch rows_of_all = batch;
  if (function != table_.step) rows_of_all.actions = nullptr;  // the caller may be writing the next ones
  for (std::size_t i = first; i < first + count; ++i) {
    Rows rows(layout_, rows_of_all, i, stride());
    raceway_error own{};
    const bool threw = function(&rows.one, 0, 1, &own) >= 0;
    std::string flaw = rows.flaw();
    if (flaw.empty()) flaw = damage_to_struct(rows.one.envs);
    if (flaw.empty() && !threw) flaw = unset_entry(rows);
    if (flaw.empty() && !threw) {
      rows.copy_back();
      continue;
    }
    batch.episodes[i].status = RACEWAY_FRESH;
    if (failed >= 0) continue;
    failed = static_cast<std::int64_t>(i);
    if (!flaw.empty()) std::snprintf(own.text, sizeof own.text, "%s", flaw.c_str());
    if (outside) *outside = !flaw.empty();
    *error = own;
  }
  return failed;
}

// What is wrong with observe() is told by reset and step, which call it too.
void Guard::observe(const raceway_batch& batch, std::size_t first, std::size_t count) const {
  raceway_batch rows_of_all = batch;
  rows_of_all.actions = nullptr;
  for (std::size_t i = first; i < first + count; ++i) {
    Rows rows(layout_, rows_of_all, i, stride());
    table_.observe(&rows.one, 0, 1);
    rows.copy_back();
  }
}

// An entry that holds what the row was filled with before, whatever that was.
std::string Guard::unset_entry(Rows& rows) const {
  Fenced& obs = rows.obs();
  const std::size_t bytes = rows.scalar_bytes(), entries = obs.size() / bytes;
  const auto is_unset = [&](std::size_t entry, std::byte value) {
    return is_filled(obs.data() + entry * bytes, bytes, value);
  };
  std::vector<std::size_t> suspects;
  for (std::size_t entry = 0; entry < entries; ++entry) {
    if (is_unset(entry, kUnset)) suspects.push_back(entry);
  }
  if (suspects.empty()) return "";
  const std::vector<std::byte> written(obs.data(), obs.data() + obs.size());
  fill(obs.data(), obs.size(), kUnsetAgain);
  raceway_batch again = rows.one;
  again.info = nullptr;
  table_.observe(&again, 0, 1);
  for (const std::size_t entry : suspects) {
    if (!is_unset(entry, kUnsetAgain)) continue;
    return "observe() leaves entry " + std::to_string(entry) + " of its row, counted from 0, as it was: kObsSize is " +
           std::to_string(entries) + ", and each of these must be written every time";
  }
  std::copy(written.begin(), written.end(), obs.data());
  return "";
}

std::string Guard::damage_to_struct(void* env) const {
  std::byte* begin = shifted(env, 0);
  std::byte* end = begin + table_.env_size;
  const bool past_end = !is_filled(end, margin_, kCanary);
  if (!past_end && is_filled(begin - margin_, margin_, kCanary)) return "";
  fill(begin - margin_, margin_, kCanary);
  fill(end, margin_, kCanary);
  return std::string("it writes ") + (past_end ? "past the end of " : "before the beginning of ") +
         "its own struct, as by an index that is outside one of its arrays";
}

std::string Guard::save(const void* env, void* row, std::size_t bytes) const {
  Fenced first(bytes), second(bytes);
  fill(first.data(), bytes, kUnset);
  fill(second.data(), bytes, kUnsetAgain);
  table_.save(env, first.data());
  table_.save(env, second.data());
  std::memcpy(row, first.data(), bytes);
  const char* way = "Its parts must keep the lengths that they have when it is made: resize no std::vector";
  if (first.overrun()) return "archive() writes more than the " + std::to_string(bytes) + " bytes of its state. " + way;
  if (first.underrun()) return "archive() writes before the beginning of its state";
  if (std::memcmp(first.data(), second.data(), bytes) == 0) return "";
  return "archive() writes less than the " + std::to_string(bytes) + " bytes of its state. " + way;
}

}  // namespace raceway
