// A one-legged robot that hops.
#pragma once

#include "walker.hpp"

namespace raceway {

struct Hopper : WalkerEnv<Hopper> {
  static constexpr const char* kName = "Hopper";
  static constexpr auto kParameters =
      mujoco_parameters("'hopper.xml'", "4",
                        std::array{
                            raceway_parameter{"forward_reward_weight", RACEWAY_REAL, "1.0"},
                            raceway_parameter{"ctrl_cost_weight", RACEWAY_REAL, "1e-3"},
                            raceway_parameter{"healthy_reward", RACEWAY_REAL, "1.0"},
                            raceway_parameter{"terminate_when_unhealthy", RACEWAY_FLAG, "True"},
                            raceway_parameter{"healthy_state_range", RACEWAY_REALS, "(-100.0, 100.0)"},
                            raceway_parameter{"healthy_z_range", RACEWAY_REALS, "(0.7, inf)"},
                            raceway_parameter{"healthy_angle_range", RACEWAY_REALS, "(-0.2, 0.2)"},
                            raceway_parameter{"reset_noise_scale", RACEWAY_REAL, "5e-3"},
                            raceway_parameter{"exclude_current_positions_from_observation", RACEWAY_FLAG, "True"},
                        });

  struct Config : WalkerConfig {
    explicit Config(const Arguments& arguments)
        : WalkerConfig(arguments, {0.7, std::numeric_limits<double>::infinity()}, {-0.2, 0.2}),
          state(bounds(arguments, "healthy_state_range", {-100.0, 100.0})) {}
    Bounds state;
  };

  explicit Hopper(const Config& config) : WalkerEnv(config), config_(&config) {}

  bool healthy(const mjData& data) const {
    const auto within = [this](double x) { return config_->state.low < x && x < config_->state.high; };
    return upright(data) && std::all_of(data.qpos + 2, data.qpos + config_->nq(), within) &&
           std::all_of(data.qvel, data.qvel + config_->nv(), within);
  }

 private:
  const Config* config_;
};

}  // namespace raceway
