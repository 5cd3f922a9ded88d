#include "built_in.hpp"
#include "envs/mujoco/ant.hpp"
#include "envs/mujoco/half_cheetah.hpp"
#include "envs/mujoco/hopper.hpp"
#include "envs/mujoco/walker2d.hpp"

namespace raceway {

std::vector<Task> legged_tasks() {
  return {
      built_in<Ant>("Ant-v5", 1000),
      built_in<HalfCheetah>("HalfCheetah-v5", 1000),
      built_in<Hopper>("Hopper-v5", 1000),
      built_in<Walker2d>("Walker2d-v5", 1000),
  };
}

}  // namespace raceway
