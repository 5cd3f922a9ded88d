// A two-legged robot that walks.
#pragma once

#include "walker.hpp"

namespace raceway {

struct Walker2d : WalkerEnv<Walker2d> {
  static constexpr const char* kName = "Walker2d";
  static constexpr auto kParameters =
      mujoco_parameters("'walker2d_v5.xml'", "4",
                        std::array{
                            raceway_parameter{"forward_reward_weight", RACEWAY_REAL, "1.0"},
                            raceway_parameter{"ctrl_cost_weight", RACEWAY_REAL, "1e-3"},
                            raceway_parameter{"healthy_reward", RACEWAY_REAL, "1.0"},
                            raceway_parameter{"terminate_when_unhealthy", RACEWAY_FLAG, "True"},
                            raceway_parameter{"healthy_z_range", RACEWAY_REALS, "(0.8, 2.0)"},
                            raceway_parameter{"healthy_angle_range", RACEWAY_REALS, "(-1.0, 1.0)"},
                            raceway_parameter{"reset_noise_scale", RACEWAY_REAL, "5e-3"},
                            raceway_parameter{"exclude_current_positions_from_observation", RACEWAY_FLAG, "True"},
                        });

  struct Config : WalkerConfig {
    explicit Config(const Arguments& arguments) : WalkerConfig(arguments, {0.8, 2.0}, {-1.0, 1.0}) {}
  };

  explicit Walker2d(const Config& config) : WalkerEnv(config) {}

  bool healthy(const mjData& data) const { return upright(data); }
};

}  // namespace raceway
