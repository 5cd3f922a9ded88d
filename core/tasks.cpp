#include "tasks.hpp"

#include <algorithm>
#include <string_view>

namespace raceway {
namespace {

std::vector<Task> all_by_id() {
  std::vector<Task> all;
  for (const auto family : {classic_tasks, toy_tasks, synthetic_tasks, legged_tasks, humanoid_tasks, jointed_tasks}) {
    for (Task& task : family()) all.push_back(std::move(task));
  }
  std::sort(all.begin(), all.end(),
            [](const Task& a, const Task& b) { return std::string_view(a.id) < std::string_view(b.id); });
  return all;
}

}  // namespace

const std::vector<Task>& tasks() {
  static const std::vector<Task> kTasks = all_by_id();
  return kTasks;
}

}  // namespace raceway
