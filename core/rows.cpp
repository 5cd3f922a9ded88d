#include "rows.hpp"

#include <cstring>

namespace raceway {

RowLayout::RowLayout(const raceway_layout& layout, std::size_t rows, Extras extras) : rows_(rows), extras_(extras) {
  std::size_t obs_bytes = 0;
  for (std::size_t i = 0; i < layout.num_obs; ++i) obs_bytes += bytes_of(layout.obs[i]);
  obs_ = add(obs_bytes);
  reward_ = add(sizeof(double));
  terminated_ = add(1);
  truncated_ = add(1);
  if (layout.num_faults > 0) fault_ = add(1);
  for (std::size_t i = 0; i < layout.num_info; ++i) {
    info_.push_back(add(bytes_of(layout.info[i])));
    info_present_.push_back(add(1));
  }
  if (extras.final_rows) {
    final_obs_ = add(obs_bytes);
    for (std::size_t i = 0; i < layout.num_info; ++i) final_info_.push_back(add(bytes_of(layout.info[i])));
  }
  if (extras.episodes) {
    episode_return_ = add(sizeof(double));
    episode_length_ = add(sizeof(std::int64_t));
    episode_time_ = add(sizeof(double));
  }
  // What follows is not part of an environment's row.
  const auto reserve = [this](std::size_t bytes) {
    const std::size_t offset = bytes_;
    bytes_ += round_up(bytes, kCacheLine);
    return offset;
  };
  if (extras.env_ids) env_ids_ = reserve(rows * sizeof(std::int64_t));
  info_table_ = reserve(info_.size() * sizeof(void*));
  info_present_table_ = reserve(info_.size() * sizeof(void*));
  final_info_table_ = reserve(final_info_.size() * sizeof(void*));
}

std::size_t RowLayout::add(std::size_t row_bytes) {
  const std::size_t offset = bytes_;
  spans_.push_back({offset, row_bytes});
  bytes_ += round_up(rows_ * row_bytes, kCacheLine);
  return offset;
}

raceway_batch RowLayout::bind(std::byte* base) const {
  const auto table = [base](std::size_t at, const std::vector<std::size_t>& offsets) {
    auto** pointers = reinterpret_cast<void**>(base + at);
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      // Written once per block: workers may be reading them when the same block is bound again.
      if (pointers[i] != base + offsets[i]) pointers[i] = base + offsets[i];
    }
    return pointers;
  };
  raceway_batch batch{};
  batch.obs = base + obs_;
  batch.reward = reinterpret_cast<double*>(base + reward_);
  batch.terminated = reinterpret_cast<std::uint8_t*>(base + terminated_);
  batch.truncated = reinterpret_cast<std::uint8_t*>(base + truncated_);
  if (fault_) batch.fault = reinterpret_cast<std::uint8_t*>(base + *fault_);
  batch.info = table(info_table_, info_);
  batch.info_present = reinterpret_cast<std::uint8_t**>(table(info_present_table_, info_present_));
  if (extras_.final_rows) {
    batch.final_obs = base + final_obs_;
    batch.final_info = table(final_info_table_, final_info_);
  }
  if (extras_.episodes) {
    batch.episode_return = reinterpret_cast<double*>(base + episode_return_);
    batch.episode_length = reinterpret_cast<std::int64_t*>(base + episode_length_);
    batch.episode_time = reinterpret_cast<double*>(base + episode_time_);
  }
  return batch;
}

void RowLayout::copy(std::byte* to, std::size_t to_row, const RowLayout& from_layout, const std::byte* from,
                     std::size_t from_row, std::size_t count) const {
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    const std::size_t bytes = spans_[i].row_bytes;
    std::memcpy(to + spans_[i].offset + to_row * bytes, from + from_layout.spans_[i].offset + from_row * bytes,
                count * bytes);
  }
}

}  // namespace raceway
