#include "mujoco_task.hpp"

namespace raceway {
namespace {

template <class Make>
auto named(const char* argument, const std::string& name, Make make) {
  try {
    return make();
  } catch (const std::invalid_argument& failure) {
    throw std::invalid_argument(std::string(argument) + "['" + name + "']: " + failure.what());
  }
}

std::vector<int> chosen_controls(const mjModel& model, const std::optional<std::string>& actuators) {
  std::vector<int> controls;
  const auto add = [&](int actuator) {
    const int first = model.actuator_ctrladr[actuator];
    for (int i = first; i < first + model.actuator_ctrlnum[actuator]; ++i) controls.push_back(i);
  };
  if (!actuators) {
    for (int i = 0; i < model.nactuator; ++i) add(i);
  } else {
    if (actuators->empty()) throw std::invalid_argument("actuators is empty. Name one or more, or leave it out.");
    for (const std::string& name : lines_of(*actuators)) add(mujoco::id_of(model, mjOBJ_ACTUATOR, name));
  }
  std::vector<int> sorted = controls;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    throw std::invalid_argument("actuators names one of them twice.");
  }
  return controls;
}

}  // namespace

MujocoTask::Config::Config(const Arguments& arguments)
    : MujocoConfig(arguments, {5, {}}),
      controls(chosen_controls(*model, arguments.text("actuators"))),
      noise(noise_scale(arguments, 0.01)) {
  const std::string seen = arguments.text("observe").value_or("qpos\nqvel");
  if (seen.empty()) throw std::invalid_argument("observe is empty. Name one thing or more, such as 'qpos'.");
  for (const std::string& name : lines_of(seen)) {
    observe.push_back(named("observe", name, [&] { return mujoco::Observable(*model, name); }));
    obs_size += observe.back().size();
    forces |= observe.back().reads_forces();
  }
  if (obs_size == 0) throw std::invalid_argument("observe names nothing that the model has.");
  for (const NamedRange& range : arguments.ranges("reward")) {
    if (range.low != range.high || !std::isfinite(range.low)) {
      throw std::invalid_argument("reward['" + range.name + "'] is not one finite number: a weight is.");
    }
    reward.push_back(named("reward", range.name, [&] { return Term{{*model, range.name}, range.low}; }));
    forces |= reward.back().quantity.reads_forces();
    info.push_back(on_steps("reward_" + range.name));
  }
  for (const NamedRange& range : arguments.ranges("terminate")) {
    terminate.push_back(
        named("terminate", range.name, [&] { return Limit{{*model, range.name}, range.low, range.high}; }));
    forces |= terminate.back().quantity.reads_forces();
  }
  action_size = controls.size();
}

Spaces MujocoTask::spaces(const Config& config) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Spaces spaces = mujoco_spaces(config);
  std::vector<double> low, high;
  for (const int control : config.controls) {
    const bool limited = config.model->actuator_ctrllimited[control] != 0;
    low.push_back(limited ? config.model->actuator_ctrlrange[2 * control] : -kInfinity);
    high.push_back(limited ? config.model->actuator_ctrlrange[2 * control + 1] : kInfinity);
  }
  spaces.action = box<float>(low, high);
  return spaces;
}

}  // namespace raceway
