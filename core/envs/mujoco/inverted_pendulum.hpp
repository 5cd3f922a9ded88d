// A cart that balances a pole.
#pragma once

#include "base.hpp"

namespace raceway {

struct InvertedPendulum : MujocoEnv<InvertedPendulum> {
  static constexpr const char* kName = "InvertedPendulum";
  static constexpr auto kParameters = mujoco_parameters(
      "'inverted_pendulum.xml'", "2", std::array{raceway_parameter{"reset_noise_scale", RACEWAY_REAL, "0.01"}});
  enum Value { kSurvive };

  struct Config : MujocoConfig {
    explicit Config(const Arguments& arguments)
        : MujocoConfig(arguments, {2, {on_steps<std::int64_t>("reward_survive")}}),
          noise(noise_scale(arguments, 0.01)) {
      require_exactly(2, 2, "a slider joint, then a hinge");
      obs_size = 4;
    }
    double noise;
  };

  explicit InvertedPendulum(const Config& config) : MujocoEnv(config), config_(&config) {}

  void start(Random& random, mjData& data) {
    uniform_positions(random, data, config_->noise);
    uniform_velocities(random, data, config_->noise);
  }

  Step score(mjData& data, const float*) {
    const bool fallen = std::fabs(data.qpos[1]) > 0.2;
    value(kSurvive) = fallen ? 0.0 : 1.0;
    return {value(kSurvive), fallen};
  }

  void look(const mjData& data) { write_state(data, 0, observation()); }

 private:
  const Config* config_;
};

}  // namespace raceway
