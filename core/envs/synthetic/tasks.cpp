#include "built_in.hpp"
#include "envs/synthetic/busy.hpp"

namespace raceway {

std::vector<Task> synthetic_tasks() {
  return {
      built_in<Busy>("Busy-v0", 1000),
  };
}

}  // namespace raceway
