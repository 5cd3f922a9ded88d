// A cart that balances a pole on a pole.
#pragma once

#include "base.hpp"

namespace raceway {

struct InvertedDoublePendulum : MujocoEnv<InvertedDoublePendulum> {
  static constexpr const char* kName = "InvertedDoublePendulum";
  static constexpr auto kParameters = mujoco_parameters("'inverted_double_pendulum.xml'", "5",
                                                        std::array{
                                                            raceway_parameter{"healthy_reward", RACEWAY_REAL, "10.0"},
                                                            raceway_parameter{"reset_noise_scale", RACEWAY_REAL, "0.1"},
                                                        });
  enum Value { kSurvive, kDistance, kVelocity };

  struct Config : MujocoConfig {
    explicit Config(const Arguments& arguments)
        : MujocoConfig(arguments,
                       {5, {on_steps("reward_survive"), on_steps("distance_penalty"), on_steps("velocity_penalty")}}),
          healthy_reward(arguments.real("healthy_reward", 10.0)),
          noise(noise_scale(arguments, 0.1)) {
      require_exactly(3, 3, "a slider joint, then two hinges");
      if (model->nsite < 1) throw std::invalid_argument("the model has no site: its first one is the tip.");
      obs_size = 9;
    }
    double healthy_reward, noise;
  };

  explicit InvertedDoublePendulum(const Config& config) : MujocoEnv(config), config_(&config) {}

  void start(Random& random, mjData& data) {
    uniform_positions(random, data, config_->noise);
    normal_velocities(random, data, config_->noise);
  }

  Step score(mjData& data, const float*) {
    const double x = data.site_xpos[0], y = data.site_xpos[2];
    const bool fallen = y <= 1.0;
    const double distance = 0.01 * numpy::squared(x) + numpy::squared(y - 2.0);
    const double velocity = 1e-3 * numpy::squared(data.qvel[1]) + 5e-3 * numpy::squared(data.qvel[2]);
    const double survive = config_->healthy_reward * (fallen ? 0.0 : 1.0);  // minus zero, if that is negative
    value(kSurvive) = survive;
    value(kDistance) = -distance;
    value(kVelocity) = -velocity;
    return {survive - distance - velocity, fallen};
  }

  void look(const mjData& data) {
    double* row = observation();
    row[0] = data.qpos[0];
    for (int i = 0; i < 2; ++i) {
      row[1 + i] = std::sin(data.qpos[1 + i]);
      row[3 + i] = std::cos(data.qpos[1 + i]);
    }
    for (int i = 0; i < 3; ++i) row[5 + i] = numpy::clip(data.qvel[i], -10.0, 10.0);
    row[8] = numpy::clip(data.qfrc_constraint[0], -10.0, 10.0);
  }

 private:
  const Config* config_;
};

}  // namespace raceway
