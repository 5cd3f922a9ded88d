// A flat two-legged animal that runs.
#pragma once

#include "base.hpp"

namespace raceway {

struct HalfCheetah : MujocoEnv<HalfCheetah> {
  static constexpr const char* kName = "HalfCheetah";
  static constexpr auto kParameters =
      mujoco_parameters("'half_cheetah.xml'", "5",
                        std::array{
                            raceway_parameter{"forward_reward_weight", RACEWAY_REAL, "1.0"},
                            raceway_parameter{"ctrl_cost_weight", RACEWAY_REAL, "0.1"},
                            raceway_parameter{"reset_noise_scale", RACEWAY_REAL, "0.1"},
                            raceway_parameter{"exclude_current_positions_from_observation", RACEWAY_FLAG, "True"},
                        });
  enum Value { kPosition, kVelocity, kForward, kControl };

  struct Config : MujocoConfig {
    explicit Config(const Arguments& arguments)
        : MujocoConfig(arguments, {5,
                                   {always("x_position"), on_steps("x_velocity"), on_steps("reward_forward"),
                                    on_steps<float>("reward_ctrl")}}),
          forward_weight(arguments.real("forward_reward_weight", 1.0)),
          control_weight(arguments.real("ctrl_cost_weight", 0.1)),
          noise(noise_scale(arguments, 0.1)),
          skipped(arguments.flag("exclude_current_positions_from_observation", true) ? 1 : 0) {
      require(1, 1, "a slider joint along x comes first");
      obs_size = nq() + nv() - skipped;
    }
    double forward_weight, control_weight, noise;
    std::size_t skipped;
  };

  explicit HalfCheetah(const Config& config) : MujocoEnv(config), config_(&config) {}

  void start(Random& random, mjData& data) {
    uniform_positions(random, data, config_->noise);
    normal_velocities(random, data, config_->noise);
  }

  Step score(mjData& data, const float* action) {
    const double velocity = (data.qpos[0] - position_before(0)) / config_->dt;
    const double forward = config_->forward_weight * velocity;
    const float cost = control_cost(config_->control_weight, action);
    value(kVelocity) = velocity;
    value(kForward) = forward;
    value(kControl) = -cost;
    return {forward - static_cast<double>(cost), false};
  }

  void look(const mjData& data) {
    value(kPosition) = data.qpos[0];
    write_state(data, config_->skipped, observation());
  }

 private:
  const Config* config_;
};

}  // namespace raceway
