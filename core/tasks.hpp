// The built-in tasks by name.
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
  double (*bare_loop)(const Arguments&, const BareRun&);
  double (*bare_policy_loop)(const Arguments&, const BareRun&, const Network&);
};

const std::vector<Task>& tasks();

}  // namespace raceway
