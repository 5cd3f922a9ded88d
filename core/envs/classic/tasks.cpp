#include "built_in.hpp"
#include "envs/classic/acrobot.hpp"
#include "envs/classic/cart_pole.hpp"
#include "envs/classic/mountain_car.hpp"
#include "envs/classic/mountain_car_continuous.hpp"
#include "envs/classic/pendulum.hpp"

namespace raceway {

std::vector<Task> classic_tasks() {
  return {
      built_in<Acrobot>("Acrobot-v1", 500),
      built_in<CartPole>("CartPole-v0", 200),
      built_in<CartPole>("CartPole-v1", 500),
      built_in<MountainCar>("MountainCar-v0", 200),
      built_in<MountainCarContinuous>("MountainCarContinuous-v0", 999),
      built_in<Pendulum>("Pendulum-v1", 200),
  };
}

}  // namespace raceway
