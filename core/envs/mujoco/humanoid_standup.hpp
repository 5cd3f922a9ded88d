// A human figure that lies and stands up.
#pragma once

#include "humanoids.hpp"

namespace raceway {

struct HumanoidStandup : HumanoidsEnv<HumanoidStandup> {
  static constexpr const char* kName = "HumanoidStandup";
  static constexpr auto kParameters =
      mujoco_parameters("'humanoidstandup.xml'", "5",
                        std::array{
                            raceway_parameter{"uph_cost_weight", RACEWAY_REAL, "1"},
                            raceway_parameter{"ctrl_cost_weight", RACEWAY_REAL, "0.1"},
                            raceway_parameter{"impact_cost_weight", RACEWAY_REAL, "0.5e-6"},
                            raceway_parameter{"impact_cost_range", RACEWAY_REALS, "(-inf, 10.0)"},
                            raceway_parameter{"reset_noise_scale", RACEWAY_REAL, "1e-2"},
                            raceway_parameter{"exclude_current_positions_from_observation", RACEWAY_FLAG, "True"},
                            raceway_parameter{"include_cinert_in_observation", RACEWAY_FLAG, "True"},
                            raceway_parameter{"include_cvel_in_observation", RACEWAY_FLAG, "True"},
                            raceway_parameter{"include_qfrc_actuator_in_observation", RACEWAY_FLAG, "True"},
                            raceway_parameter{"include_cfrc_ext_in_observation", RACEWAY_FLAG, "True"},
                        });
  enum Value { kX, kY, kHeight, kUp, kControl, kImpact };

  struct Config : HumanoidsConfig {
    explicit Config(const Arguments& arguments)
        : HumanoidsConfig(arguments,
                          {5,
                           {always("x_position"), always("y_position"), always("z_distance_from_origin"),
                            on_steps("reward_linup"), on_steps("reward_quadctrl"), on_steps("reward_impact")},
                           true}),
          impact_weight(arguments.real("impact_cost_weight", 0.5e-6)),
          impact_range(bounds(arguments, "impact_cost_range", {-std::numeric_limits<double>::infinity(), 10.0})) {}
    // Gymnasium takes uph_cost_weight and does not use it.
    double impact_weight;
    Bounds impact_range;
  };

  explicit HumanoidStandup(const Config& config) : HumanoidsEnv(config), config_(&config) {}

  Step score(mjData& data, const float*) {
    const double up = data.qpos[2] / model().opt.timestep;
    const double control = config_->control_weight * squared_controls(data);
    const double impact = numpy::clip(config_->impact_weight * squared_forces(data), config_->impact_range.low,
                                      config_->impact_range.high);
    value(kUp) = up;
    value(kControl) = -control;
    value(kImpact) = -impact;
    return {up - control - impact + 1.0, false};
  }

  void look(const mjData& data) {
    value(kX) = data.qpos[0];
    value(kY) = data.qpos[1];
    value(kHeight) = data.qpos[2] - model().qpos0[2];
    look_at_body(data);
  }

 private:
  const Config* config_;
};

}  // namespace raceway
