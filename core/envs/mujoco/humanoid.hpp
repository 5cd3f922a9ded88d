// A human figure that walks.
#pragma once

#include "humanoids.hpp"

namespace raceway {

struct Humanoid : HumanoidsEnv<Humanoid> {
  static constexpr const char* kName = "Humanoid";
  static constexpr auto kParameters =
      mujoco_parameters("'humanoid.xml'", "5",
                        std::array{
                            raceway_parameter{"forward_reward_weight", RACEWAY_REAL, "1.25"},
                            raceway_parameter{"ctrl_cost_weight", RACEWAY_REAL, "0.1"},
                            raceway_parameter{"contact_cost_weight", RACEWAY_REAL, "5e-7"},
                            raceway_parameter{"contact_cost_range", RACEWAY_REALS, "(-inf, 10.0)"},
                            raceway_parameter{"healthy_reward", RACEWAY_REAL, "5.0"},
                            raceway_parameter{"terminate_when_unhealthy", RACEWAY_FLAG, "True"},
                            raceway_parameter{"healthy_z_range", RACEWAY_REALS, "(1.0, 2.0)"},
                            raceway_parameter{"reset_noise_scale", RACEWAY_REAL, "1e-2"},
                            raceway_parameter{"exclude_current_positions_from_observation", RACEWAY_FLAG, "True"},
                            raceway_parameter{"include_cinert_in_observation", RACEWAY_FLAG, "True"},
                            raceway_parameter{"include_cvel_in_observation", RACEWAY_FLAG, "True"},
                            raceway_parameter{"include_qfrc_actuator_in_observation", RACEWAY_FLAG, "True"},
                            raceway_parameter{"include_cfrc_ext_in_observation", RACEWAY_FLAG, "True"},
                        });
  enum Value { kX, kY, kDistance, kXVelocity, kYVelocity, kSurvive, kForward, kControl, kContact };

  struct Config : HumanoidsConfig {
    explicit Config(const Arguments& arguments)
        : HumanoidsConfig(arguments, {5,
                                      {always("x_position"), always("y_position"), always("distance_from_origin"),
                                       on_steps("x_velocity"), on_steps("y_velocity"), on_steps("reward_survive"),
                                       on_steps("reward_forward"), on_steps("reward_ctrl"), on_steps("reward_contact")},
                                      true}),
          forward_weight(arguments.real("forward_reward_weight", 1.25)),
          contact_weight(arguments.real("contact_cost_weight", 5e-7)),
          healthy_reward(arguments.real("healthy_reward", 5.0)),
          terminates(arguments.flag("terminate_when_unhealthy", true)),
          contact_range(bounds(arguments, "contact_cost_range", {-std::numeric_limits<double>::infinity(), 10.0})),
          z(bounds(arguments, "healthy_z_range", {1.0, 2.0})) {}
    double forward_weight, contact_weight, healthy_reward;
    bool terminates;
    Bounds contact_range, z;
  };

  explicit Humanoid(const Config& config) : HumanoidsEnv(config), config_(&config) {}

  Step score(mjData& data, const float*) {
    const Point centre = mass_centre(data);
    value(kXVelocity) = (centre.x - centre_.x) / config_->dt;
    value(kYVelocity) = (centre.y - centre_.y) / config_->dt;
    const bool healthy = config_->z.low < data.qpos[2] && data.qpos[2] < config_->z.high;
    const double forward = config_->forward_weight * value(kXVelocity);
    const double survive = static_cast<double>(healthy) * config_->healthy_reward;
    const double control = config_->control_weight * squared_controls(data);
    const double contact = numpy::clip(config_->contact_weight * squared_forces(data), config_->contact_range.low,
                                       config_->contact_range.high);
    value(kSurvive) = survive;
    value(kForward) = forward;
    value(kControl) = -control;
    value(kContact) = -contact;
    return {forward + survive - (control + contact), !healthy && config_->terminates};
  }

  void look(const mjData& data) {
    centre_ = mass_centre(data);
    value(kX) = data.qpos[0];
    value(kY) = data.qpos[1];
    value(kDistance) = numpy::norm(data.qpos, 2);
    look_at_body(data);
  }

  template <class Archive>
  void archive(Archive& archive) {
    HumanoidsEnv::archive(archive);
    archive("centre_x", centre_.x);
    archive("centre_y", centre_.y);
  }

 private:
  struct Point {
    double x = 0.0, y = 0.0;
  };

  Point mass_centre(const mjData& data) const {
    const double* mass = model().body_mass;
    Point sum;
    for (std::size_t i = 0; i < config_->nbody(); ++i) {
      sum.x += mass[i] * data.xipos[3 * i];
      sum.y += mass[i] * data.xipos[3 * i + 1];
    }
    const double total = numpy::sum<double>(0, config_->nbody(), [mass](std::size_t i) { return mass[i]; });
    return {sum.x / total, sum.y / total};
  }

  const Config* config_;
  Point centre_;  // where it was seen last
};

}  // namespace raceway
