// Finds environments that write outside their own memory. Each is called alone, with its rows and its struct between
// canaries: bytes that no environment may change. For raceway check and for sanitizer builds; too slow for training.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "table.h"

namespace raceway {

// Whether pools are guarded unless they are told otherwise: in a process that examines an environment.
inline std::atomic<bool>& guards_pools() {
#ifdef RACEWAY_GUARD
  static std::atomic<bool> all{true};
#else
  static std::atomic<bool> all{false};
#endif
  return all;
}

class Guard {
 public:
  using Call = std::int64_t (*)(const raceway_batch*, std::size_t, std::size_t, raceway_error*);

  Guard(const raceway_table& table, const raceway_layout& layout);

  // Where structs of environments lie in memory, each between canaries: `stride()` bytes for each, itself `margin()`
  // bytes behind the beginning of that.
  std::size_t margin() const { return margin_; }
  std::size_t stride() const { return table_.env_size + 2 * margin_; }
  void surround(std::byte* memory, std::size_t num_envs) const;

  // What table.reset or table.step does, for one environment after the other. One that wrote where it must not is left
  // FRESH, as one that threw, and `error` says what it did; `outside`, if given, tells the two apart.
  std::int64_t call(Call function, const raceway_batch& batch, std::size_t first, std::size_t count,
                    raceway_error* error, bool* outside = nullptr) const;
  void observe(const raceway_batch& batch, std::size_t first, std::size_t count) const;

  // What table.save does. Returns what is wrong with the state that was written; empty if nothing is.
  std::string save(const void* env, void* row, std::size_t bytes) const;

 private:
  class Rows;

  std::string unset_entry(Rows& rows) const;
  std::string damage_to_struct(void* env) const;

  const raceway_table& table_;
  const raceway_layout& layout_;
  const std::size_t margin_;  // a multiple of the struct's alignment
};

}  // namespace raceway
