// What Hopper and Walker2d share: flat legged robots that must stay upright.
#pragma once

#include "base.hpp"

namespace raceway {

struct WalkerConfig : MujocoConfig {
  WalkerConfig(const Arguments& arguments, Bounds healthy_z, Bounds healthy_angle)
      : MujocoConfig(arguments,
                     {4,
                      {always("x_position"), always("z_distance_from_origin"), on_steps("x_velocity"),
                       on_steps("reward_forward"), on_steps<float>("reward_ctrl"), on_steps("reward_survive")}}),
        forward_weight(arguments.real("forward_reward_weight", 1.0)),
        control_weight(arguments.real("ctrl_cost_weight", 1e-3)),
        healthy_reward(arguments.real("healthy_reward", 1.0)),
        noise(noise_scale(arguments, 5e-3)),
        terminates(arguments.flag("terminate_when_unhealthy", true)),
        z(bounds(arguments, "healthy_z_range", healthy_z)),
        angle(bounds(arguments, "healthy_angle_range", healthy_angle)),
        skipped(arguments.flag("exclude_current_positions_from_observation", true) ? 1 : 0) {
    require(3, 3, "joints along x, along z and around y come first");
    obs_size = nq() + nv() - skipped;
  }
  double forward_weight, control_weight, healthy_reward, noise;
  bool terminates;
  Bounds z, angle;
  std::size_t skipped;
};

template <class Task>
class WalkerEnv : public MujocoEnv<Task> {
 public:
  enum Value { kPosition, kHeight, kVelocity, kForward, kControl, kSurvive };

  explicit WalkerEnv(const WalkerConfig& config) : MujocoEnv<Task>(config), walker_(&config) {}

  void start(Random& random, mjData& data) {
    this->uniform_positions(random, data, walker_->noise);
    this->uniform_velocities(random, data, walker_->noise);
  }

  Step score(mjData& data, const float* action) {
    const bool healthy = static_cast<Task&>(*this).healthy(data);
    const double velocity = (data.qpos[0] - this->position_before(0)) / walker_->dt;
    const double forward = walker_->forward_weight * velocity;
    const double survive = static_cast<double>(healthy) * walker_->healthy_reward;
    const float cost = this->control_cost(walker_->control_weight, action);
    this->value(kVelocity) = velocity;
    this->value(kForward) = forward;
    this->value(kControl) = -cost;
    this->value(kSurvive) = survive;
    return {forward + survive - static_cast<double>(cost), !healthy && walker_->terminates};
  }

  void look(const mjData& data) {
    this->value(kPosition) = data.qpos[0];
    this->value(kHeight) = data.qpos[1] - this->model().qpos0[1];
    double* row = std::copy(data.qpos + walker_->skipped, data.qpos + walker_->nq(), this->observation());
    for (std::size_t i = 0; i < walker_->nv(); ++i) row[i] = numpy::clip(data.qvel[i], -10.0, 10.0);
  }

 protected:
  bool upright(const mjData& data) const {
    const double z = data.qpos[1], angle = data.qpos[2];
    return walker_->z.low < z && z < walker_->z.high && walker_->angle.low < angle && angle < walker_->angle.high;
  }

 private:
  const WalkerConfig* walker_;
};

}  // namespace raceway
