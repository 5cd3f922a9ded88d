#include "table_loop.hpp"

#include <mutex>

#include "pool.hpp"
#include "random.hpp"
#include "rows.hpp"

namespace raceway {
namespace {

// What went wrong first in any of several threads.
class Failure {
 public:
  void note(const raceway_error& error) {
    const std::lock_guard lock(mutex_);
    if (text_.empty()) text_ = error.text;
  }
  const std::string& text() const { return text_; }

 private:
  std::mutex mutex_;
  std::string text_;
};

// One thread's environments, with rows of their own.
class Share {
 public:
  Share(const raceway_table& table, const void* configuration, const BareRun& run, Failure& failure, std::size_t begin,
        std::size_t end)
      : table_(table),
        layout_(*table.layout(configuration)),
        run_(run),
        failure_(failure),
        begin_(begin),
        count_(end - begin),
        rows_(layout_, std::max<std::size_t>(count_, 1), {false, false, false}),
        envs_(std::max<std::size_t>(count_, 1) * table.env_size),
        memory_(rows_.bytes()),
        randoms_(count_),
        episodes_(count_),
        records_(count_) {
    const UserCodeScope scope(run_.source);
    raceway_error error{};
    for (std::size_t i = 0; i < count_; ++i) {
      if (table_.construct(envs_.data() + i * table_.env_size, configuration, &error) != 0) {
        failure_.note(error);
        return;
      }
      made_ += 1;
      const std::uint32_t seed = run_.seed + static_cast<std::uint32_t>(begin_ + i);
      randoms_[i] = seeded({&seed, 1});
      episodes_[i].limit = static_cast<std::int32_t>(run_.limit);
    }
    batch_ = rows_.bind(memory_.data());
    batch_.layout = &layout_;
    batch_.envs = envs_.data();
    batch_.random = randoms_.data();
    batch_.episodes = episodes_.data();
    batch_.records = records_.data();
    batch_.autoreset = RACEWAY_NEXT_STEP;
    if (table_.reset(&batch_, 0, count_, &error) >= 0) failure_.note(error);
  }
  ~Share() {
    const UserCodeScope scope(run_.source);
    for (std::size_t i = 0; i < made_; ++i) table_.destroy(envs_.data() + i * table_.env_size);
  }
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

  void loop() {
    const auto* actions = static_cast<const std::byte*>(run_.actions);
    const std::size_t bytes = bytes_of(layout_.action);
    const UserCodeScope scope(run_.source);
    raceway_error error{};
    for (std::size_t step = 0; step < run_.num_steps && made_ == count_; ++step) {
      batch_.actions = actions + (step * run_.num_envs + begin_) * bytes;
      if (table_.step(&batch_, 0, count_, &error) >= 0) failure_.note(error);
    }
  }

 private:
  const raceway_table& table_;
  const raceway_layout& layout_;
  const BareRun run_;
  Failure& failure_;
  const std::size_t begin_, count_;
  std::size_t made_ = 0;
  const RowLayout rows_;
  Memory envs_, memory_;
  std::vector<raceway_random> randoms_;
  std::vector<raceway_episode> episodes_;
  std::vector<raceway_record> records_;
  raceway_batch batch_{};
};

}  // namespace

double table_loop(const raceway_table& table, const void* configuration, const BareRun& run) {
  Failure failure;
  const double seconds = seconds_side_by_side(
      run, [&](std::size_t begin, std::size_t end) { return Share(table, configuration, run, failure, begin, end); });
  if (!failure.text().empty()) throw std::invalid_argument(std::string(table.name) + ": " + failure.text());
  return seconds;
}

}  // namespace raceway
