// Tasks by name: those that are built in, and those of libraries that were loaded.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bare.hpp"
#include "table.h"

namespace raceway {

struct Task {
  const char* id;
  const raceway_table* table;
  std::int64_t max_episode_steps;  // 0: no limit
  // Keyword arguments that the name stands for, their values written as Python would.
  std::vector<std::pair<const char*, const char*>> preset;
  // Null for those of libraries.
  double (*bare_loop)(const Arguments&, const BareRun&) = nullptr;
  double (*bare_policy_loop)(const Arguments&, const BareRun&, const Network&) = nullptr;
};

// Those that are built in.
const std::vector<Task>& tasks();

}  // namespace raceway
