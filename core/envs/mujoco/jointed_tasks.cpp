#include "built_in.hpp"
#include "envs/mujoco/inverted_double_pendulum.hpp"
#include "envs/mujoco/inverted_pendulum.hpp"
#include "envs/mujoco/mujoco_task.hpp"
#include "envs/mujoco/pusher.hpp"
#include "envs/mujoco/reacher.hpp"
#include "envs/mujoco/swimmer.hpp"

namespace raceway {

std::vector<Task> jointed_tasks() {
  return {
      built_in<InvertedDoublePendulum>("InvertedDoublePendulum-v5", 1000),
      built_in<InvertedPendulum>("InvertedPendulum-v5", 1000),
      built_in<MujocoTask>("MujocoTask-v0", 1000),
      built_in<Pusher>("Pusher-v5", 100),
      built_in<Reacher>("Reacher-v5", 50),
      built_in<Swimmer>("Swimmer-v5", 1000),
  };
}

}  // namespace raceway
