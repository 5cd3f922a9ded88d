// Tasks by name: those that are built in, and those of libraries that were loaded.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "table.h"

namespace raceway {

struct Task {
  const char* id;
  const raceway_table* table;
  std::int64_t max_episode_steps;  // 0: no limit
  // Keyword arguments that the name stands for, their values written as Python would.
  std::vector<std::pair<const char*, const char*>> preset;
  const char* source = nullptr;  // the name of the header that it is from; null: it is built in
};

// Those that are built in, by id.
const std::vector<Task>& tasks();

// The same by family. Each is compiled by itself, in envs/, so that all cores have something to do.
std::vector<Task> classic_tasks();
std::vector<Task> toy_tasks();
std::vector<Task> synthetic_tasks();
std::vector<Task> legged_tasks();
std::vector<Task> humanoid_tasks();
std::vector<Task> jointed_tasks();

}  // namespace raceway
