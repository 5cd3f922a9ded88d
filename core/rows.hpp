// How the columns of a batch lie in one block of memory: row i of each belongs to environment (or slot) i.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "env.hpp"
#include "slab.hpp"

namespace raceway {

class RowLayout {
 public:
  struct Extras {
    bool final_rows = false;  // SAME_STEP: the last observation and info of ended episodes
    bool episodes = false;    // their statistics
    bool env_ids = false;     // a batch of some environments says which
  };

  RowLayout(const raceway_layout& layout, std::size_t rows, Extras extras);

  std::size_t rows() const { return rows_; }
  std::size_t bytes() const { return bytes_; }

  // The columns at `base`, as a batch. Its tables of pointers are written into the block too.
  raceway_batch bind(std::byte* base) const;
  std::int64_t* env_ids(std::byte* base) const { return reinterpret_cast<std::int64_t*>(base + env_ids_); }

  // Copies `count` rows of every column from a block of another length.
  void copy(std::byte* to, std::size_t to_row, const RowLayout& from_layout, const std::byte* from,
            std::size_t from_row, std::size_t count) const;

 private:
  struct Span {
    std::size_t offset, row_bytes;
  };

  std::size_t add(std::size_t row_bytes);

  std::size_t rows_, bytes_ = 0;
  std::vector<Span> spans_;  // every column, in the order they were added
  std::size_t obs_ = 0, reward_ = 0, terminated_ = 0, truncated_ = 0;
  std::size_t final_obs_ = 0, episode_return_ = 0, episode_length_ = 0, episode_time_ = 0, env_ids_ = 0;
  std::optional<std::size_t> fault_;
  std::vector<std::size_t> info_, info_present_, final_info_;
  std::size_t info_table_ = 0, info_present_table_ = 0, final_info_table_ = 0;
  Extras extras_;
};

}  // namespace raceway
