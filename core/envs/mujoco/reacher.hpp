// A two-jointed arm whose tip reaches for a target.
#pragma once

#include "base.hpp"

namespace raceway {

struct Reacher : MujocoEnv<Reacher> {
  static constexpr const char* kName = "Reacher";
  static constexpr auto kParameters =
      mujoco_parameters("'reacher.xml'", "2",
                        std::array{
                            raceway_parameter{"reward_dist_weight", RACEWAY_REAL, "1"},
                            raceway_parameter{"reward_control_weight", RACEWAY_REAL, "1"},
                        });
  enum Value { kDistance, kControl };

  struct Config : MujocoConfig {
    explicit Config(const Arguments& arguments)
        : MujocoConfig(arguments, {2, {on_steps("reward_dist"), on_steps<float>("reward_ctrl")}}),
          distance_weight(arguments.real("reward_dist_weight", 1.0)),
          control_weight(arguments.real("reward_control_weight", 1.0)),
          tip(mujoco::id_of(*model, mjOBJ_BODY, "fingertip")),
          target(mujoco::id_of(*model, mjOBJ_BODY, "target")) {
      require_exactly(4, 4, "two joints of the arm, then two of the target");
      obs_size = 10;
    }
    double distance_weight, control_weight;
    int tip, target;
  };

  explicit Reacher(const Config& config) : MujocoEnv(config), config_(&config) {}

  void start(Random& random, mjData& data) {
    for (int i = 0; i < 4; ++i) data.qpos[i] = random.uniform(-0.1, 0.1) + model().qpos0[i];
    do {
      data.qpos[2] = random.uniform(-0.2, 0.2);
      data.qpos[3] = random.uniform(-0.2, 0.2);
    } while (!(numpy::norm(data.qpos + 2, 2) < 0.2));
    uniform_velocities(random, data, 0.005);
    data.qvel[2] = data.qvel[3] = 0.0;
  }

  Step score(mjData& data, const float* action) {
    double gap[3];
    difference(data, config_->tip, config_->target, gap);
    const double distance = -numpy::norm(gap, 3) * config_->distance_weight;
    const float control = -numpy::sum_of_squares(action, config_->nu()) * static_cast<float>(config_->control_weight);
    value(kDistance) = distance;
    value(kControl) = control;
    return {distance + static_cast<double>(control), false};
  }

  void look(const mjData& data) {
    double gap[3];
    difference(data, config_->tip, config_->target, gap);
    double* row = observation();
    for (int i = 0; i < 2; ++i) {
      row[i] = std::cos(data.qpos[i]);
      row[2 + i] = std::sin(data.qpos[i]);
      row[4 + i] = data.qpos[2 + i];
      row[6 + i] = data.qvel[i];
      row[8 + i] = gap[i];
    }
  }

 private:
  const Config* config_;
};

}  // namespace raceway
