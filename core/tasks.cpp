#include "tasks.hpp"

#include "envs/classic/acrobot.hpp"
#include "envs/classic/cart_pole.hpp"
#include "envs/classic/mountain_car.hpp"
#include "envs/classic/mountain_car_continuous.hpp"
#include "envs/classic/pendulum.hpp"
#include "envs/mujoco/ant.hpp"
#include "envs/mujoco/half_cheetah.hpp"
#include "envs/mujoco/hopper.hpp"
#include "envs/mujoco/humanoid.hpp"
#include "envs/mujoco/humanoid_standup.hpp"
#include "envs/mujoco/inverted_double_pendulum.hpp"
#include "envs/mujoco/inverted_pendulum.hpp"
#include "envs/mujoco/mujoco_task.hpp"
#include "envs/mujoco/pusher.hpp"
#include "envs/mujoco/reacher.hpp"
#include "envs/mujoco/swimmer.hpp"
#include "envs/mujoco/walker2d.hpp"
#include "envs/synthetic/busy.hpp"
#include "envs/toy/blackjack.hpp"
#include "envs/toy/cliff_walking.hpp"
#include "envs/toy/frozen_lake.hpp"
#include "envs/toy/taxi.hpp"

namespace raceway {
namespace {

template <class Env>
Task task(const char* id, std::int64_t max_episode_steps,
          std::vector<std::pair<const char*, const char*>> preset = {}) {
  return {id, Adapter<Env>::table(), max_episode_steps, std::move(preset), bare_loop<Env>, bare_policy_loop<Env>};
}

}  // namespace

const std::vector<Task>& tasks() {
  static const std::vector<Task> kTasks{
      task<Acrobot>("Acrobot-v1", 500),
      task<Ant>("Ant-v5", 1000),
      task<Blackjack>("Blackjack-v1", 0),
      task<Busy>("Busy-v0", 1000),
      task<CartPole>("CartPole-v0", 200),
      task<CartPole>("CartPole-v1", 500),
      task<CliffWalking>("CliffWalking-v1", 0),
      task<CliffWalking>("CliffWalkingSlippery-v1", 0, {{"is_slippery", "True"}}),
      task<FrozenLake>("FrozenLake-v1", 100),
      task<FrozenLake>("FrozenLake8x8-v1", 200, {{"map_name", "'8x8'"}}),
      task<HalfCheetah>("HalfCheetah-v5", 1000),
      task<Hopper>("Hopper-v5", 1000),
      task<Humanoid>("Humanoid-v5", 1000),
      task<HumanoidStandup>("HumanoidStandup-v5", 1000),
      task<InvertedDoublePendulum>("InvertedDoublePendulum-v5", 1000),
      task<InvertedPendulum>("InvertedPendulum-v5", 1000),
      task<MountainCar>("MountainCar-v0", 200),
      task<MountainCarContinuous>("MountainCarContinuous-v0", 999),
      task<MujocoTask>("MujocoTask-v0", 1000),
      task<Pendulum>("Pendulum-v1", 200),
      task<Pusher>("Pusher-v5", 100),
      task<Reacher>("Reacher-v5", 50),
      task<Swimmer>("Swimmer-v5", 1000),
      task<Taxi<3>>("Taxi-v3", 200),
      task<Taxi<4>>("Taxi-v4", 200),
      task<Walker2d>("Walker2d-v5", 1000),
  };
  return kTasks;
}

}  // namespace raceway
