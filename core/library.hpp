// Environments that were compiled on their own: a library with one symbol, which leads to the same table as a built-in
// task's. None is ever unloaded: pools may still use it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tasks.hpp"

namespace raceway {

// Opens the library at `path`; throws std::invalid_argument if it is none, or of another version.
Task open_library(const std::string& path);

// Makes its task known; one of the same id that was known before is so no longer, but stays where it is.
void add_task(Task task);

// Those that were made known, by id.
const std::vector<std::unique_ptr<const Task>>& added_tasks();

}  // namespace raceway
