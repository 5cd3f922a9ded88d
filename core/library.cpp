#include "library.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <memory>

#include "pool.hpp"
#include "random.hpp"

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

}  // namespace

Task open_library(const std::string& path) {
  // A refused library is closed: while it is open, its path stands for it, whatever file is put there.
  std::unique_ptr<void, int (*)(void*)> handle(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL), dlclose);
  if (!handle) {
    const char* reason = dlerror();
    throw refusal(path, reason ? std::string(reason) + "." : "it cannot be loaded.");
  }
  const auto open = reinterpret_cast<raceway_open_library>(dlsym(handle.get(), RACEWAY_LIBRARY_SYMBOL));
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
  static_cast<void>(handle.release());
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

}  // namespace raceway
