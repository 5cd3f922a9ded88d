// What Humanoid and HumanoidStandup share: the observation of a whole body.
#pragma once

#include "base.hpp"

namespace raceway {

struct HumanoidsConfig : MujocoConfig {
  HumanoidsConfig(const Arguments& arguments, MujocoTraits traits)
      : MujocoConfig(arguments, std::move(traits)),
        control_weight(arguments.real("ctrl_cost_weight", 0.1)),
        noise(noise_scale(arguments, 1e-2)),
        skipped(arguments.flag("exclude_current_positions_from_observation", true) ? 2 : 0),
        shows_inertia(arguments.flag("include_cinert_in_observation", true)),
        shows_velocity(arguments.flag("include_cvel_in_observation", true)),
        shows_actuators(arguments.flag("include_qfrc_actuator_in_observation", true)),
        shows_forces(arguments.flag("include_cfrc_ext_in_observation", true)) {
    require(3, 6, "a free joint comes first");
    const std::size_t bodies = nbody() - 1;
    obs_size = nq() + nv() - skipped + (shows_inertia ? 10 * bodies : 0) + (shows_velocity ? 6 * bodies : 0) +
               (shows_actuators ? nv() - 6 : 0) + (shows_forces ? 6 * bodies : 0);
  }
  double control_weight, noise;
  std::size_t skipped;
  bool shows_inertia, shows_velocity, shows_actuators, shows_forces;
};

template <class Task>
class HumanoidsEnv : public MujocoEnv<Task> {
 public:
  explicit HumanoidsEnv(const HumanoidsConfig& config)
      : MujocoEnv<Task>(config),
        shape_(&config),
        tendon_length_(static_cast<std::size_t>(config.model->ntendon)),
        tendon_velocity_(tendon_length_.size()) {}

  static Spaces spaces(const HumanoidsConfig& config) {
    Spaces spaces = mujoco_spaces(config);
    const auto tendons = static_cast<std::size_t>(config.model->ntendon);
    spaces.info.push_back(entries<double>("tendon_length", tendons));
    spaces.info.push_back(entries<double>("tendon_velocity", tendons));
    return spaces;
  }

  void start(Random& random, mjData& data) {
    this->uniform_positions(random, data, shape_->noise);
    this->uniform_velocities(random, data, shape_->noise);
  }

  template <class Archive>
  void archive(Archive& archive) {
    MujocoEnv<Task>::archive(archive);
    archive("tendon_length", tendon_length_);
    archive("tendon_velocity", tendon_velocity_);
  }

  void info(InfoRow row) const {
    MujocoEnv<Task>::info(row);
    const std::size_t column = shape_->info.size(), size = tendon_length_.size();
    std::copy(tendon_length_.begin(), tendon_length_.end(), row.entry<double>(column, size));
    std::copy(tendon_velocity_.begin(), tendon_velocity_.end(), row.entry<double>(column + 1, size));
  }

 protected:
  void look_at_body(const mjData& data) {
    std::copy_n(data.ten_length, tendon_length_.size(), tendon_length_.begin());
    std::copy_n(data.ten_velocity, tendon_velocity_.size(), tendon_velocity_.begin());
    const std::size_t bodies = shape_->nbody() - 1;
    double* row = this->write_state(data, shape_->skipped, this->observation());
    if (shape_->shows_inertia) row = std::copy_n(data.cinert + 10, 10 * bodies, row);
    if (shape_->shows_velocity) row = std::copy_n(data.cvel + 6, 6 * bodies, row);
    if (shape_->shows_actuators) row = std::copy_n(data.qfrc_actuator + 6, shape_->nv() - 6, row);
    if (shape_->shows_forces) std::copy_n(data.cfrc_ext + 6, 6 * bodies, row);
  }

  double squared_controls(const mjData& data) const { return numpy::sum_of_squares(data.ctrl, shape_->nu()); }
  double squared_forces(const mjData& data) const { return numpy::sum_of_squares(data.cfrc_ext, 6 * shape_->nbody()); }

 private:
  const HumanoidsConfig* shape_;
  std::vector<double> tendon_length_, tendon_velocity_;
};

}  // namespace raceway
