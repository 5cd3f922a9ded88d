#include "base.hpp"

namespace raceway {
namespace {

int checked_frame_skip(std::int64_t value) {
  if (value >= 1 && value <= 1'000'000) return static_cast<int>(value);
  throw std::invalid_argument("frame_skip=" + std::to_string(value) + " is out of range. Use 1 to 1000000.");
}

std::string given_file(const std::optional<std::string>& path) {
  if (!path || path->empty()) throw std::invalid_argument("xml_file is missing. Give the path of a MuJoCo model.");
  return *path;
}

int keyframe_of(const mjModel& model, const Arguments& arguments) {
  if (const auto name = arguments.text("keyframe")) {
    try {
      return mujoco::id_of(model, mjOBJ_KEY, *name);
    } catch (const std::invalid_argument& failure) {
      throw std::invalid_argument("keyframe='" + *name + "': " + failure.what());
    }
  }
  const std::int64_t number = arguments.integer("keyframe", -1);
  if (number >= -1 && number < model.nkey) return static_cast<int>(number);
  throw std::invalid_argument("keyframe=" + std::to_string(number) + ": the model has " + std::to_string(model.nkey) +
                              " keyframes, counted from 0.");
}

std::shared_ptr<mujoco::World> world_of(const Arguments& arguments) {
  const std::string path = given_file(arguments.text("xml_file"));
  std::string key = path + '\n';
  if (const auto name = arguments.text("keyframe")) {
    key += *name;
  } else {
    key += '\n';
    key += std::to_string(arguments.integer("keyframe", -1));
  }
  return Shelf::shared(key, [&] {
    mujoco::Model model = mujoco::load(path);
    const int keyframe = keyframe_of(*model, arguments);
    return std::make_shared<mujoco::World>(std::move(model), keyframe);
  });
}

[[noreturn]] void refuse(const mjModel& model, const char* expected) {
  throw std::invalid_argument("the model has " + std::to_string(model.nq) + " positions and " +
                              std::to_string(model.nv) + " velocities, which does not fit this task: " + expected +
                              ".");
}

}  // namespace

MujocoConfig::MujocoConfig(const Arguments& arguments, MujocoTraits traits)
    : world(world_of(arguments)),
      model(world->model.get()),
      frame_skip(checked_frame_skip(arguments.integer("frame_skip", traits.frame_skip))),
      dt(model->opt.timestep * frame_skip),
      info(std::move(traits.info)),
      forces(traits.forces),
      carried_size(static_cast<std::size_t>(mj_stateSize(model, mujoco::kCarried))),
      action_size(nu()),
      variation(*model, arguments.ranges("randomize")) {}

void MujocoConfig::require(int least_qpos, int least_qvel, const char* expected) const {
  if (model->nq < least_qpos || model->nv < least_qvel) refuse(*model, expected);
}

void MujocoConfig::require_exactly(int qpos, int qvel, const char* expected) const {
  if (model->nq != qpos || model->nv != qvel) refuse(*model, expected);
}

int MujocoConfig::body(const Arguments& arguments, const char* name, std::int64_t fallback) const {
  if (const auto text = arguments.text(name)) return mujoco::id_of(*model, mjOBJ_BODY, *text);
  const std::int64_t number = arguments.integer(name, fallback);
  if (number >= 0 && number < model->nbody) return static_cast<int>(number);
  throw std::invalid_argument(std::string(name) + "=" + std::to_string(number) + ": the model has bodies 0 to " +
                              std::to_string(model->nbody - 1) + ".");
}

double noise_scale(const Arguments& arguments, double fallback) {
  const double scale = arguments.real("reset_noise_scale", fallback);
  if (scale >= 0.0) return scale;
  throw std::invalid_argument("reset_noise_scale=" + std::to_string(scale) + " is negative. Use 0 or more.");
}

Bounds bounds(const Arguments& arguments, const char* name, Bounds fallback) {
  const auto values = arguments.reals(name, {fallback.low, fallback.high});
  if (values.size() == 2) return {values[0], values[1]};
  throw std::invalid_argument(std::string(name) + " has " + std::to_string(values.size()) +
                              " numbers. Give two: the lowest and the highest.");
}

Spaces mujoco_spaces(const MujocoConfig& config) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<double> infinite(config.obs_size, kInfinity), negative(config.obs_size, -kInfinity);
  std::vector<double> low, high;
  for (std::size_t i = 0; i < config.nu(); ++i) {
    low.push_back(config.model->actuator_ctrlrange[2 * i]);
    high.push_back(config.model->actuator_ctrlrange[2 * i + 1]);
  }
  return {{box<double>(negative, infinite)}, box<float>(low, high), config.info, RACEWAY_SINGLE, config.dt};
}

}  // namespace raceway
