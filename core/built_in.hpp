// A built-in task, made from the struct of its environment.
#pragma once

#include <utility>
#include <vector>

#include "adapter.hpp"
#include "tasks.hpp"

namespace raceway {

// `preset`: see Task.
template <class Env>
Task built_in(const char* id, std::int64_t max_episode_steps,
              std::vector<std::pair<const char*, const char*>> preset = {}) {
  return {id, Adapter<Env>::table(), max_episode_steps, std::move(preset)};
}

}  // namespace raceway
