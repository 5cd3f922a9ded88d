// Three links that swim.
#pragma once

#include "base.hpp"

namespace raceway {

struct Swimmer : MujocoEnv<Swimmer> {
  static constexpr const char* kName = "Swimmer";
  static constexpr auto kParameters =
      mujoco_parameters("'swimmer.xml'", "4",
                        std::array{
                            raceway_parameter{"forward_reward_weight", RACEWAY_REAL, "1.0"},
                            raceway_parameter{"ctrl_cost_weight", RACEWAY_REAL, "1e-4"},
                            raceway_parameter{"reset_noise_scale", RACEWAY_REAL, "0.1"},
                            raceway_parameter{"exclude_current_positions_from_observation", RACEWAY_FLAG, "True"},
                        });
  enum Value { kX, kY, kDistance, kXVelocity, kYVelocity, kForward, kControl };

  struct Config : MujocoConfig {
    explicit Config(const Arguments& arguments)
        : MujocoConfig(arguments, {4,
                                   {always("x_position"), always("y_position"), always("distance_from_origin"),
                                    on_steps("x_velocity"), on_steps("y_velocity"), on_steps("reward_forward"),
                                    on_steps<float>("reward_ctrl")}}),
          forward_weight(arguments.real("forward_reward_weight", 1.0)),
          control_weight(arguments.real("ctrl_cost_weight", 1e-4)),
          noise(noise_scale(arguments, 0.1)),
          skipped(arguments.flag("exclude_current_positions_from_observation", true) ? 2 : 0) {
      require(2, 2, "slider joints along x and y come first");
      obs_size = nq() + nv() - skipped;
    }
    double forward_weight, control_weight, noise;
    std::size_t skipped;
  };

  explicit Swimmer(const Config& config) : MujocoEnv(config), config_(&config) {}

  void start(Random& random, mjData& data) {
    uniform_positions(random, data, config_->noise);
    uniform_velocities(random, data, config_->noise);
  }

  Step score(mjData& data, const float* action) {
    value(kXVelocity) = (data.qpos[0] - position_before(0)) / config_->dt;
    value(kYVelocity) = (data.qpos[1] - position_before(1)) / config_->dt;
    const double forward = config_->forward_weight * value(kXVelocity);
    const float cost = control_cost(config_->control_weight, action);
    value(kForward) = forward;
    value(kControl) = -cost;
    return {forward - static_cast<double>(cost), false};
  }

  void look(const mjData& data) {
    value(kX) = data.qpos[0];
    value(kY) = data.qpos[1];
    value(kDistance) = numpy::norm(data.qpos, 2);
    write_state(data, config_->skipped, observation());
  }

 private:
  const Config* config_;
};

}  // namespace raceway
