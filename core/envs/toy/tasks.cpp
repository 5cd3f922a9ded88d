#include "built_in.hpp"
#include "envs/toy/blackjack.hpp"
#include "envs/toy/cliff_walking.hpp"
#include "envs/toy/frozen_lake.hpp"
#include "envs/toy/taxi.hpp"

namespace raceway {

std::vector<Task> toy_tasks() {
  return {
      built_in<Blackjack>("Blackjack-v1", 0),
      built_in<CliffWalking>("CliffWalking-v1", 0),
      built_in<CliffWalking>("CliffWalkingSlippery-v1", 0, {{"is_slippery", "True"}}),
      built_in<FrozenLake>("FrozenLake-v1", 100),
      built_in<FrozenLake>("FrozenLake8x8-v1", 200, {{"map_name", "'8x8'"}}),
      built_in<Taxi<3>>("Taxi-v3", 200),
      built_in<Taxi<4>>("Taxi-v4", 200),
  };
}

}  // namespace raceway
