// What the MuJoCo tasks have in common: one model for all environments with equal arguments, a step of `frame_skip`
// substeps, faults, state, noise.
//
// A task is a struct on MujocoEnv<Task> with
//
//   struct Config : MujocoConfig { ... };       // sets obs_size
//   void start(Random&, mjData&);               // writes qpos and qvel of a new episode
//   Step score(mjData&, const float* action);   // after a step: the reward, whether it ends, info values
//   void look(const mjData&);                   // after a reset and after score(): observation() and info values
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "../../env.hpp"
#include "../numpy_math.hpp"
#include "simulator.hpp"
#include "variation.hpp"

namespace raceway {

// The parameters of every MuJoCo task, then its own.
template <std::size_t N>
constexpr auto mujoco_parameters(const char* xml_file, const char* frame_skip,
                                 const std::array<raceway_parameter, N>& own) {
  std::array<raceway_parameter, N + 3> all{raceway_parameter{"xml_file", RACEWAY_FILE, xml_file},
                                           raceway_parameter{"frame_skip", RACEWAY_INTEGER, frame_skip}};
  for (std::size_t i = 0; i < N; ++i) all[i + 2] = own[i];
  all[N + 2] = {"randomize", RACEWAY_RANGES, "None"};
  return all;
}

// What differs between the tasks' models.
struct MujocoTraits {
  std::int64_t frame_skip;
  std::vector<Column> info;  // one number each, in the order of the task's values
  bool forces = false;       // whether it reads what mj_rnePostConstraint computes: cfrc_ext, cacc, cfrc_int
};

inline Column always(const char* name) {
  return entry<double>(name);
}
template <class T = double>
Column on_steps(std::string name) {
  return entry<T>(std::move(name), RACEWAY_STEPS);
}

struct MujocoConfig {
  MujocoConfig(const Arguments& arguments, MujocoTraits traits);

  std::size_t nq() const { return static_cast<std::size_t>(model->nq); }
  std::size_t nv() const { return static_cast<std::size_t>(model->nv); }
  std::size_t nu() const { return static_cast<std::size_t>(model->nu); }
  std::size_t nbody() const { return static_cast<std::size_t>(model->nbody); }

  // Refuses a model of another build than the task's, saying what it expects; with `least` numbers or more, or exactly
  // so many.
  void require(int least_qpos, int least_qvel, const char* expected) const;
  void require_exactly(int qpos, int qvel, const char* expected) const;
  // A body by name or by number.
  int body(const Arguments& arguments, const char* name, std::int64_t fallback) const;

  std::shared_ptr<mujoco::World> world;  // shared with configurations that are made together from the same file
  const mjModel* model;
  int frame_skip;
  double dt;
  std::vector<Column> info;
  bool forces;
  std::size_t carried_size;
  std::size_t obs_size = 0;     // set by the task's configuration
  std::size_t action_size = 0;  // the number of actuators, unless a task sets another
  mujoco::Variation variation;
};

// reset_noise_scale, which is not negative.
double noise_scale(const Arguments& arguments, double fallback);

// A pair of numbers such as healthy_z_range.
struct Bounds {
  double low, high;
};
Bounds bounds(const Arguments& arguments, const char* name, Bounds fallback);

// An observation without bounds; an action within what the model's actuators take.
Spaces mujoco_spaces(const MujocoConfig& config);

template <class Task>
class MujocoEnv {
 public:
  static constexpr std::array<raceway_option, 0> kOptions{};
  static constexpr auto kFaults = mujoco::kFaults;
  using Scalar = double;
  using Action = float;

  explicit MujocoEnv(const MujocoConfig& config)
      : base_(&config),
        own_model_(config.variation.empty()
                       ? nullptr
                       : std::make_unique<mujoco::VariedModel>(config.world->lean, config.variation)),
        carried_(config.carried_size),
        previous_(config.carried_size),
        controls_(config.nu()),
        factors_(config.variation.lowest()),
        observation_(config.obs_size),
        values_(config.info.size()) {}

  static Spaces spaces(const MujocoConfig& config) { return mujoco_spaces(config); }

  std::size_t obs_size() const { return observation_.size(); }
  std::size_t action_size() const { return base_->action_size; }

  void reset(Random& random, const double*) {
    mujoco::Simulators::Loan data(base_->world->simulators);
    if (own_model_) {
      base_->variation.draw(random, factors_);
      own_model_->apply(factors_, *data);
    }
    if (base_->world->keyframe < 0) {
      mj_resetData(&model(), &*data);
    } else {
      mj_resetDataKeyframe(&model(), &*data, base_->world->keyframe);
    }
    task().start(random, *data);
    mj_getState(&model(), &*data, previous_.data(), mujoco::kCarried);
    mj_forward(&model(), &*data);
    mj_getState(&model(), &*data, carried_.data(), mujoco::kCarried);
    std::copy_n(data->ctrl, controls_.size(), controls_.begin());
    std::fill(values_.begin(), values_.end(), 0.0);
    if constexpr (requires { task().began(*data); }) task().began(*data);
    task().look(*data);
  }

  Step step(const Action* action, Random&) {
    mujoco::Simulators::Loan data(base_->world->simulators);
    mj_setState(&model(), &*data, carried_.data(), mujoco::kCarried);
    std::copy(controls_.begin(), controls_.end(), data->ctrl);
    task().act(action, data->ctrl);
    const std::uint8_t fault = mujoco::advance(model(), *data, base_->frame_skip, base_->forces, previous_.data());
    if (fault != 0) {
      // The episode ends where the simulation was last sound, its observation included.
      data.discard();
      previous_ = carried_;
      for (std::size_t i = 0; i < values_.size(); ++i) {
        if (base_->info[i].when == RACEWAY_STEPS) values_[i] = 0.0;
      }
      return {0.0, true, fault};
    }
    std::copy_n(data->ctrl, controls_.size(), controls_.begin());
    const Step result = task().score(*data, action);
    task().look(*data);
    mj_getState(&model(), &*data, carried_.data(), mujoco::kCarried);
    return result;
  }

  template <class T>
  void observe(T* row) const {
    std::copy(observation_.begin(), observation_.end(), row);
  }

  void info(InfoRow row) const {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      switch (base_->info[i].dtype) {
        case RACEWAY_FLOAT32:
          *row.entry<float>(i) = static_cast<float>(values_[i]);
          break;
        case RACEWAY_INT64:
          *row.entry<std::int64_t>(i) = std::fabs(values_[i]) < 1e18 ? static_cast<std::int64_t>(values_[i]) : 0;
          break;
        default:
          *row.entry<double>(i) = values_[i];
      }
    }
  }

  // `previous` was carried into the last substep: for drawing, because MuJoCo's poses are those of its beginning.
  template <class Archive>
  void archive(Archive& archive) {
    archive("carried", carried_);
    archive("previous", previous_);
    archive("controls", controls_);
    archive("factors", factors_);
    archive("observation", observation_);
    archive("info", values_);
  }

  std::string flaw() const {
    if (const std::string flaw = base_->variation.flaw(factors_); !flaw.empty()) return flaw;
    for (const auto& [name, part] : {std::pair("carried", &carried_), std::pair("previous", &previous_)}) {
      if (mujoco::can_be_carried(model(), part->data())) continue;
      return std::string(name) + " has a position in the buffer of a delay that is not in the buffer";
    }
    return "";
  }

  void restored() {
    if (!own_model_) return;
    const mujoco::Simulators::Loan data(base_->world->simulators);
    own_model_->apply(factors_, *data);
  }

 protected:
  // Actuators take the action as it is.
  void act(const Action* action, double* controls) const {
    for (std::size_t i = 0; i < controls_.size(); ++i) controls[i] = static_cast<double>(action[i]);
  }

  const mjModel& model() const { return own_model_ ? own_model_->model() : base_->world->lean.model(); }
  double* observation() { return observation_.data(); }
  double& value(std::size_t i) { return values_[i]; }

  // Where a joint was before the step that is being scored.
  double position_before(std::size_t i) const { return carried_[1 + i]; }  // the first number is the time

  // What observations begin with: positions from `skipped` on, then velocities. Where they end.
  double* write_state(const mjData& data, std::size_t skipped, double* row) const {
    row = std::copy(data.qpos + skipped, data.qpos + base_->nq(), row);
    return std::copy_n(data.qvel, base_->nv(), row);
  }

  // In single precision, as actions are.
  float control_cost(double weight, const Action* action) const {
    return static_cast<float>(weight) * numpy::sum_of_squares(action, base_->nu());
  }

  // From body b to body a.
  static void difference(const mjData& data, int a, int b, double* result) {
    for (int i = 0; i < 3; ++i) result[i] = data.xpos[3 * a + i] - data.xpos[3 * b + i];
  }

  // --- starting states

  void uniform_positions(Random& random, mjData& data, double scale) const {
    for (int i = 0; i < model().nq; ++i) data.qpos[i] = model().qpos0[i] + random.uniform(-scale, scale);
  }
  void uniform_velocities(Random& random, mjData& data, double scale) const {
    for (int i = 0; i < model().nv; ++i) data.qvel[i] = 0.0 + random.uniform(-scale, scale);
  }
  void normal_velocities(Random& random, mjData& data, double scale) const {
    for (int i = 0; i < model().nv; ++i) data.qvel[i] = 0.0 + scale * random.normal();
  }

 private:
  Task& task() { return static_cast<Task&>(*this); }

  const MujocoConfig* base_;
  std::unique_ptr<mujoco::VariedModel> own_model_;  // only if the model's fields are varied
  std::vector<double> carried_, previous_, controls_, factors_, observation_, values_;
};

}  // namespace raceway
