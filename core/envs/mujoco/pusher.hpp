// An arm that pushes a cylinder to a goal.
#pragma once

#include "base.hpp"

namespace raceway {

struct Pusher : MujocoEnv<Pusher> {
  static constexpr const char* kName = "Pusher";
  static constexpr auto kParameters =
      mujoco_parameters("'pusher_v5.xml'", "5",
                        std::array{
                            raceway_parameter{"reward_near_weight", RACEWAY_REAL, "0.5"},
                            raceway_parameter{"reward_dist_weight", RACEWAY_REAL, "1"},
                            raceway_parameter{"reward_control_weight", RACEWAY_REAL, "0.1"},
                        });
  enum Value { kDistance, kControl, kNear };

  struct Config : MujocoConfig {
    explicit Config(const Arguments& arguments)
        : MujocoConfig(arguments,
                       {5, {on_steps("reward_dist"), on_steps<float>("reward_ctrl"), on_steps("reward_near")}}),
          near_weight(arguments.real("reward_near_weight", 0.5)),
          distance_weight(arguments.real("reward_dist_weight", 1.0)),
          control_weight(arguments.real("reward_control_weight", 0.1)),
          tip(mujoco::id_of(*model, mjOBJ_BODY, "tips_arm")),
          object(mujoco::id_of(*model, mjOBJ_BODY, "object")),
          goal(mujoco::id_of(*model, mjOBJ_BODY, "goal")) {
      require(11, 11, "seven joints of the arm, then two of the object and two of the goal");
      obs_size = 23;
    }
    double near_weight, distance_weight, control_weight;
    int tip, object, goal;
  };

  explicit Pusher(const Config& config) : MujocoEnv(config), config_(&config) {}

  void start(Random& random, mjData& data) {
    std::copy_n(model().qpos0, config_->nq(), data.qpos);
    double* last = data.qpos + config_->nq();
    do {
      last[-4] = random.uniform(-0.3, 0.0);
      last[-3] = random.uniform(-0.2, 0.2);
    } while (!(numpy::norm(last - 4, 2) > 0.17));
    last[-2] = last[-1] = 0.0;
    uniform_velocities(random, data, 0.005);
    std::fill_n(data.qvel + config_->nv() - 4, 4, 0.0);
  }

  Step score(mjData& data, const float* action) {
    double to_tip[3], to_goal[3];
    difference(data, config_->object, config_->tip, to_tip);
    difference(data, config_->object, config_->goal, to_goal);
    const double near = -numpy::norm(to_tip, 3) * config_->near_weight;
    const double distance = -numpy::norm(to_goal, 3) * config_->distance_weight;
    const float control = -numpy::sum_of_squares(action, config_->nu()) * static_cast<float>(config_->control_weight);
    value(kDistance) = distance;
    value(kControl) = control;
    value(kNear) = near;
    return {distance + static_cast<double>(control) + near, false};
  }

  void look(const mjData& data) {
    double* row = std::copy_n(data.qpos, 7, observation());
    row = std::copy_n(data.qvel, 7, row);
    for (const int body : {config_->tip, config_->object, config_->goal})
      row = std::copy_n(data.xpos + 3 * body, 3, row);
  }

 private:
  const Config* config_;
};

}  // namespace raceway
