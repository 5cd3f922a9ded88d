// A four-legged robot that walks.
#pragma once

#include "base.hpp"

namespace raceway {

struct Ant : MujocoEnv<Ant> {
  static constexpr const char* kName = "Ant";
  static constexpr auto kParameters =
      mujoco_parameters("'ant.xml'", "5",
                        std::array{
                            raceway_parameter{"forward_reward_weight", RACEWAY_REAL, "1"},
                            raceway_parameter{"ctrl_cost_weight", RACEWAY_REAL, "0.5"},
                            raceway_parameter{"contact_cost_weight", RACEWAY_REAL, "5e-4"},
                            raceway_parameter{"healthy_reward", RACEWAY_REAL, "1.0"},
                            raceway_parameter{"main_body", RACEWAY_NAME, "1"},
                            raceway_parameter{"terminate_when_unhealthy", RACEWAY_FLAG, "True"},
                            raceway_parameter{"healthy_z_range", RACEWAY_REALS, "(0.2, 1.0)"},
                            raceway_parameter{"contact_force_range", RACEWAY_REALS, "(-1.0, 1.0)"},
                            raceway_parameter{"reset_noise_scale", RACEWAY_REAL, "0.1"},
                            raceway_parameter{"exclude_current_positions_from_observation", RACEWAY_FLAG, "True"},
                            raceway_parameter{"include_cfrc_ext_in_observation", RACEWAY_FLAG, "True"},
                        });
  enum Value { kX, kY, kDistance, kXVelocity, kYVelocity, kForward, kControl, kContact, kSurvive };

  struct Config : MujocoConfig {
    explicit Config(const Arguments& arguments)
        : MujocoConfig(arguments,
                       {5,
                        {always("x_position"), always("y_position"), always("distance_from_origin"),
                         on_steps("x_velocity"), on_steps("y_velocity"), on_steps("reward_forward"),
                         on_steps<float>("reward_ctrl"), on_steps("reward_contact"), on_steps("reward_survive")},
                        true}),
          forward_weight(arguments.real("forward_reward_weight", 1.0)),
          control_weight(arguments.real("ctrl_cost_weight", 0.5)),
          contact_weight(arguments.real("contact_cost_weight", 5e-4)),
          healthy_reward(arguments.real("healthy_reward", 1.0)),
          noise(noise_scale(arguments, 0.1)),
          main_body(body(arguments, "main_body", 1)),
          terminates(arguments.flag("terminate_when_unhealthy", true)),
          z(bounds(arguments, "healthy_z_range", {0.2, 1.0})),
          force(bounds(arguments, "contact_force_range", {-1.0, 1.0})),
          skipped(arguments.flag("exclude_current_positions_from_observation", true) ? 2 : 0),
          shows_forces(arguments.flag("include_cfrc_ext_in_observation", true)) {
      require(3, 0, "a free joint comes first");
      obs_size = nq() + nv() - skipped + (shows_forces ? 6 * (nbody() - 1) : 0);
    }
    double forward_weight, control_weight, contact_weight, healthy_reward, noise;
    int main_body;
    bool terminates;
    Bounds z, force;
    std::size_t skipped;
    bool shows_forces;
  };

  explicit Ant(const Config& config) : MujocoEnv(config), config_(&config) {}

  void start(Random& random, mjData& data) {
    uniform_positions(random, data, config_->noise);
    normal_velocities(random, data, config_->noise);
  }

  Step score(mjData& data, const float* action) {
    const double* body = data.xpos + 3 * config_->main_body;
    value(kXVelocity) = (body[0] - body_x_) / config_->dt;
    value(kYVelocity) = (body[1] - body_y_) / config_->dt;
    const bool is_healthy = healthy(data);
    const double forward = value(kXVelocity) * config_->forward_weight;
    const double survive = static_cast<double>(is_healthy) * config_->healthy_reward;
    const float control = control_cost(config_->control_weight, action);
    const double contact = config_->contact_weight * numpy::sum<double>(0, 6 * config_->nbody(), [&](std::size_t i) {
                             const double clipped = clipped_force(data.cfrc_ext[i]);
                             return clipped * clipped;
                           });
    value(kForward) = forward;
    value(kControl) = -control;
    value(kContact) = -contact;
    value(kSurvive) = survive;
    return {forward + survive - (static_cast<double>(control) + contact), !is_healthy && config_->terminates};
  }

  void look(const mjData& data) {
    body_x_ = data.xpos[3 * config_->main_body];
    body_y_ = data.xpos[3 * config_->main_body + 1];
    value(kX) = data.qpos[0];
    value(kY) = data.qpos[1];
    value(kDistance) = numpy::norm(data.qpos, 2);
    double* row = write_state(data, config_->skipped, observation());
    if (!config_->shows_forces) return;
    for (std::size_t i = 6; i < 6 * config_->nbody(); ++i) *row++ = clipped_force(data.cfrc_ext[i]);
  }

  template <class Archive>
  void archive(Archive& archive) {
    MujocoEnv::archive(archive);
    archive("body_x", body_x_);
    archive("body_y", body_y_);
  }

 private:
  double clipped_force(double force) const { return numpy::clip(force, config_->force.low, config_->force.high); }

  // Gymnasium asks for a finite state too; one that is not is a fault.
  bool healthy(const mjData& data) const { return config_->z.low <= data.qpos[2] && data.qpos[2] <= config_->z.high; }

  const Config* config_;
  double body_x_ = 0.0, body_y_ = 0.0;  // where the main body was seen last; MuJoCo's xpos lags one substep behind qpos
};

}  // namespace raceway
