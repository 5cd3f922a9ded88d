#include "library.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <mutex>

#include "pool.hpp"
#include "random.hpp"
#include "rows.hpp"

namespace raceway {
namespace {

double standard_normal(raceway_random* random) {
  return Random(*random).normal();
}

constexpr raceway_host kHost{RACEWAY_TABLE_VERSION, standard_normal};

std::invalid_argument refusal(const std::string& path, const std::string& why) {
  return std::invalid_argument(path + " is refused: " + why);
}

std::vector<std::unique_ptr<const Task>>& known() {
  static std::vector<std::unique_ptr<const Task>> tasks;
  return tasks;
}

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
    for (std::size_t i = 0; i < made_; ++i) table_.destroy(envs_.data() + i * table_.env_size);
  }
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

  void loop() {
    const auto* actions = static_cast<const std::byte*>(run_.actions);
    const std::size_t bytes = bytes_of(layout_.action);
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

Task open_library(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* reason = dlerror();
    throw refusal(path, reason ? std::string(reason) + "." : "it cannot be loaded.");
  }
  const auto open = reinterpret_cast<raceway_open_library>(dlsym(handle, RACEWAY_LIBRARY_SYMBOL));
  if (!open) throw refusal(path, "it has no " RACEWAY_LIBRARY_SYMBOL "(), which RACEWAY_ENV(...) makes.");
  const raceway_library* library = open(&kHost);
  if (!library) throw refusal(path, "it gives no table.");
  if (library->version != RACEWAY_TABLE_VERSION || library->library_size != sizeof(raceway_library)) {
    throw refusal(path, "it was compiled against version " + std::to_string(library->version) +
                            " of raceway's table, this is version " + std::to_string(RACEWAY_TABLE_VERSION) +
                            ". Compile it again.");
  }
  if (!library->id || !library->table) throw refusal(path, "it has no id, or no table.");
  if (library->max_episode_steps < 0 || library->max_episode_steps > INT32_MAX) {
    throw refusal(path, "max_episode_steps is " + std::to_string(library->max_episode_steps) +
                            ", not a number of steps. Use 0 for no limit.");
  }
  check_table(*library->table);
  const raceway_table& table = *library->table;
  const auto fits = [](std::int32_t size) { return size >= 1 && size <= 8192; };
  if (table.draw && !(fits(table.picture_width) && fits(table.picture_height))) {
    throw refusal(path, "its picture is " + std::to_string(table.picture_width) + " x " +
                            std::to_string(table.picture_height) + " pixels. Use sides from 1 to 8192.");
  }
  return {library->id, library->table, library->max_episode_steps, {}};
}

void add_task(Task task) {
  static std::vector<std::unique_ptr<const Task>> replaced;
  for (auto& each : known()) {
    if (std::string(each->id) != task.id) continue;
    replaced.push_back(std::move(each));  // pools may still refer to it
    each = std::make_unique<const Task>(std::move(task));
    return;
  }
  known().push_back(std::make_unique<const Task>(std::move(task)));
  std::sort(known().begin(), known().end(),
            [](const auto& a, const auto& b) { return std::string(a->id) < std::string(b->id); });
}

const std::vector<std::unique_ptr<const Task>>& added_tasks() {
  return known();
}

double table_loop(const raceway_table& table, const std::vector<raceway_value>& values, const BareRun& run) {
  const Configuration configuration = configure(table, values);
  Failure failure;
  const double seconds = seconds_side_by_side(run, [&](std::size_t begin, std::size_t end) {
    return Share(table, configuration.get(), run, failure, begin, end);
  });
  if (!failure.text().empty()) throw std::invalid_argument(std::string(table.name) + ": " + failure.text());
  return seconds;
}

}  // namespace raceway
