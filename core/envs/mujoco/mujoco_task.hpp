// A user's own robot: a model, what is seen of it, what is rewarded, when an episode ends.
#pragma once

#include "base.hpp"
#include "quantity.hpp"

namespace raceway {

struct MujocoTask : MujocoEnv<MujocoTask> {
  static constexpr const char* kName = "MujocoTask";
  static constexpr auto kParameters =
      mujoco_parameters("None", "5",
                        std::array{
                            raceway_parameter{"observe", RACEWAY_LINES, "('qpos', 'qvel')"},
                            raceway_parameter{"reward", RACEWAY_RANGES, "None"},
                            raceway_parameter{"terminate", RACEWAY_RANGES, "None"},
                            raceway_parameter{"actuators", RACEWAY_LINES, "None"},
                            raceway_parameter{"keyframe", RACEWAY_NAME, "None"},
                            raceway_parameter{"reset_noise_scale", RACEWAY_REAL, "0.01"},
                        });

  struct Term {
    mujoco::Quantity quantity;
    double weight;
  };
  struct Limit {
    mujoco::Quantity quantity;
    double low, high;
  };

  struct Config : MujocoConfig {
    explicit Config(const Arguments& arguments);

    std::vector<mujoco::Observable> observe;
    std::vector<Term> reward;
    std::vector<Limit> terminate;
    std::vector<int> controls;  // the numbers of the controls that the action sets
    double noise;
  };

  static Spaces spaces(const Config& config);

  explicit MujocoTask(const Config& config) : MujocoEnv(config), config_(&config), previous_xpos_(3 * config.nbody()) {}

  void start(Random& random, mjData& data) {
    for (std::size_t i = 0; i < config_->nq(); ++i) data.qpos[i] += random.uniform(-config_->noise, config_->noise);
    for (std::size_t i = 0; i < config_->nv(); ++i) data.qvel[i] += random.uniform(-config_->noise, config_->noise);
    mj_normalizeQuat(&model(), data.qpos);
  }

  void act(const Action* action, double* controls) const {
    for (const int control : config_->controls) controls[control] = static_cast<double>(*action++);
  }

  Step score(mjData& data, const float*) {
    mujoco::Moment moment = at(data);
    const bool ends = std::any_of(config_->terminate.begin(), config_->terminate.end(), [&](const Limit& limit) {
      const double now = limit.quantity(moment);
      return !(limit.low <= now && now <= limit.high);
    });
    alive_ = moment.alive = !ends;
    double sum = 0.0;
    for (std::size_t i = 0; i < config_->reward.size(); ++i) {
      value(i) = config_->reward[i].weight * config_->reward[i].quantity(moment);
      sum += value(i);
    }
    return {sum, ends};
  }

  void began(const mjData& data) {
    std::copy_n(data.xpos, previous_xpos_.size(), previous_xpos_.begin());  // nothing has moved yet
    alive_ = true;
  }

  void look(const mjData& data) {
    double* row = observation();
    for (const auto& part : config_->observe) row = part.write(at(data), row);
    std::copy_n(data.xpos, previous_xpos_.size(), previous_xpos_.begin());
  }

  template <class Archive>
  void archive(Archive& archive) {
    MujocoEnv::archive(archive);
    archive("xpos", previous_xpos_);
  }

 private:
  mujoco::Moment at(const mjData& data) const { return {model(), data, previous_xpos_.data(), config_->dt, alive_}; }

  const Config* config_;
  std::vector<double> previous_xpos_;
  bool alive_ = true;  // unless the last step ended the episode
};

}  // namespace raceway
