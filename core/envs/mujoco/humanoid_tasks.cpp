#include "built_in.hpp"
#include "envs/mujoco/humanoid.hpp"
#include "envs/mujoco/humanoid_standup.hpp"

namespace raceway {

std::vector<Task> humanoid_tasks() {
  return {
      built_in<Humanoid>("Humanoid-v5", 1000),
      built_in<HumanoidStandup>("HumanoidStandup-v5", 1000),
  };
}

}  // namespace raceway
