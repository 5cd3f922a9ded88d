#include "quantity.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "../../env.hpp"
#include "../numpy_math.hpp"
#include "simulator.hpp"

namespace raceway::mujoco {
namespace {

std::vector<std::string> words_of(const std::string& name) {
  std::string lines = name;
  std::replace(lines.begin(), lines.end(), ':', '\n');
  return lines_of(lines);
}

struct Joint {
  std::size_t qpos, num_qpos, qvel, num_qvel;
};

Joint joint(const mjModel& model, const std::string& name) {
  const int id = id_of(model, mjOBJ_JOINT, name);
  static constexpr std::size_t kPositions[] = {7, 4, 1, 1}, kVelocities[] = {6, 3, 1, 1};
  const int type = model.jnt_type[id];
  return {static_cast<std::size_t>(model.jnt_qposadr[id]), kPositions[type],
          static_cast<std::size_t>(model.jnt_dofadr[id]), kVelocities[type]};
}

}  // namespace

std::string Quantity::known() {
  return "alive, control_cost, contact_cost, forward_velocity, x_velocity:BODY (y, z), x_position:BODY (y, z), "
         "upright:BODY, distance:SITE:SITE, qpos:JOINT, qvel:JOINT, sensor:NAME, sensor:NAME:INDEX";
}

Quantity::Quantity(const mjModel& model, const std::string& name) {
  struct Rule {
    const char* word;
    Kind kind;
    std::size_t least, most;  // words, itself included
    int axis = 0;
  };
  static constexpr Rule kRules[] = {
      {"alive", Kind::kAlive, 1, 1},
      {"control_cost", Kind::kControlCost, 1, 1},
      {"contact_cost", Kind::kContactCost, 1, 1},
      {"forward_velocity", Kind::kVelocity, 1, 2, 0},
      {"x_velocity", Kind::kVelocity, 1, 2, 0},
      {"y_velocity", Kind::kVelocity, 1, 2, 1},
      {"z_velocity", Kind::kVelocity, 1, 2, 2},
      {"x_position", Kind::kPosition, 1, 2, 0},
      {"y_position", Kind::kPosition, 1, 2, 1},
      {"z_position", Kind::kPosition, 1, 2, 2},
      {"upright", Kind::kUpright, 1, 2},
      {"distance", Kind::kDistance, 3, 3},
      {"qpos", Kind::kJointPosition, 2, 2},
      {"qvel", Kind::kJointVelocity, 2, 2},
      {"sensor", Kind::kSensor, 2, 3},
  };
  const std::vector<std::string> words = words_of(name);
  const auto* rule = std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule& each) {
    return words[0] == each.word && words.size() >= each.least && words.size() <= each.most;
  });
  if (rule == std::end(kRules)) throw UnknownQuantity(name);
  kind_ = rule->kind;
  index_ = rule->axis;
  if (kind_ == Kind::kVelocity || kind_ == Kind::kPosition || kind_ == Kind::kUpright) {
    if (model.nbody < 2) throw std::invalid_argument("the model has no body.");
    if (words.size() > 1) body_ = id_of(model, mjOBJ_BODY, words[1]);
  } else if (kind_ == Kind::kDistance) {
    from_ = place(model, words[1]);
    to_ = place(model, words[2]);
  } else if (kind_ == Kind::kJointPosition || kind_ == Kind::kJointVelocity) {
    const Joint found = joint(model, words[1]);
    if (found.num_qpos != 1) {
      throw std::invalid_argument("joint '" + words[1] + "' has several numbers; a quantity is one.");
    }
    index_ = static_cast<int>(kind_ == Kind::kJointPosition ? found.qpos : found.qvel);
  } else if (kind_ == Kind::kSensor) {
    index_ = sensor_number(model, words);
  }
}

// "sensor:NAME" of a sensor with one number, or "sensor:NAME:INDEX".
int Quantity::sensor_number(const mjModel& model, const std::vector<std::string>& words) {
  const int id = id_of(model, mjOBJ_SENSOR, words[1]);
  const int size = model.sensor_dim[id];
  const std::string& which = words.back();
  int index = size == 1 ? 0 : size;
  if (words.size() == 3) {
    const bool digits =
        !which.empty() && which.size() < 6 && which.find_first_not_of("0123456789") == std::string::npos;
    index = digits ? std::stoi(which) : size;
  }
  if (index < size) return model.sensor_adr[id] + index;
  throw std::invalid_argument("sensor '" + words[1] + "' has " + std::to_string(size) +
                              " numbers; say which, as 'sensor:" + words[1] + ":0'.");
}

Quantity::Place Quantity::place(const mjModel& model, const std::string& name) {
  const int site = mj_name2id(&model, mjOBJ_SITE, name.c_str());
  if (site >= 0) return {true, site};
  const int body = mj_name2id(&model, mjOBJ_BODY, name.c_str());
  if (body >= 0) return {false, body};
  return {true, id_of(model, mjOBJ_SITE, name)};  // says which there are
}

double Quantity::operator()(const Moment& moment) const {
  const mjData& data = moment.data;
  switch (kind_) {
    case Kind::kAlive:
      return moment.alive ? 1.0 : 0.0;
    case Kind::kControlCost:
      return numpy::sum_of_squares(data.ctrl, static_cast<std::size_t>(moment.model.nu));
    case Kind::kContactCost:
      return numpy::sum_of_squares(data.cfrc_ext, 6 * static_cast<std::size_t>(moment.model.nbody));
    case Kind::kVelocity:
      return (data.xpos[3 * body_ + index_] - moment.previous_xpos[3 * body_ + index_]) / moment.seconds;
    case Kind::kPosition:
      return data.xpos[3 * body_ + index_];
    case Kind::kUpright:
      return data.xmat[9 * body_ + 8];
    case Kind::kDistance: {
      const mjtNum *a = from_.of(data), *b = to_.of(data);
      const double gap[3] = {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
      return numpy::norm(gap, 3);
    }
    case Kind::kJointPosition:
      return data.qpos[index_];
    case Kind::kJointVelocity:
      return data.qvel[index_];
    case Kind::kSensor:
      return data.sensordata[index_];
  }
  return 0.0;
}

// A part of one of MuJoCo's arrays, if the name says one.
std::optional<Observable::Run> Observable::run_of(const mjModel& model, const std::string& name) {
  const auto run = [](mjtNum* mjData::* array, auto first, auto size) {
    return Run{array, static_cast<std::size_t>(first), static_cast<std::size_t>(size)};
  };
  if (name == "qpos") return run(&mjData::qpos, 0, model.nq);
  if (name == "qvel") return run(&mjData::qvel, 0, model.nv);
  if (name == "act") return run(&mjData::act, 0, model.na);
  if (name == "sensors") return run(&mjData::sensordata, 0, model.nsensordata);
  const std::vector<std::string> words = words_of(name);
  if (words.size() != 2) return std::nullopt;
  if (words[0] == "sensor") {
    const int id = id_of(model, mjOBJ_SENSOR, words[1]);
    return run(&mjData::sensordata, model.sensor_adr[id], model.sensor_dim[id]);
  }
  if (words[0] != "qpos" && words[0] != "qvel") return std::nullopt;
  const Joint found = joint(model, words[1]);
  return words[0] == "qpos" ? run(&mjData::qpos, found.qpos, found.num_qpos)
                            : run(&mjData::qvel, found.qvel, found.num_qvel);
}

Observable::Observable(const mjModel& model, const std::string& name) : run_(run_of(model, name)) {
  if (run_) return;
  try {
    quantity_.emplace(model, name);
  } catch (const UnknownQuantity& failure) {
    throw std::invalid_argument(failure.what() + std::string(" Observations also take: qpos, qvel, act, sensors."));
  }
}

double* Observable::write(const Moment& moment, double* row) const {
  if (run_) return std::copy_n((moment.data.*run_->array) + run_->first, run_->size, row);
  *row = (*quantity_)(moment);
  return row + 1;
}

}  // namespace raceway::mujoco
