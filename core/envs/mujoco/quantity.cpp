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

[[noreturn]] void refuse(const std::string& name) {
  throw std::invalid_argument("there is no quantity '" + name + "'. There are: " + Quantity::known() + ".");
}

}  // namespace

std::string Quantity::known() {
  return "alive, control_cost, contact_cost, forward_velocity, x_velocity:BODY (y, z), x_position:BODY (y, z), "
         "upright:BODY, distance:SITE:SITE, qpos:JOINT, qvel:JOINT, sensor:NAME, sensor:NAME:INDEX";
}

Quantity::Quantity(const mjModel& model, const std::string& name) {
  const std::vector<std::string> words = words_of(name);
  const std::string& kind = words[0];
  const std::size_t most = kind == "sensor" || kind == "distance" ? 3 : 2;
  const bool alone = kind == "alive" || kind == "control_cost" || kind == "contact_cost";
  const bool needs = kind == "qpos" || kind == "qvel" || kind == "sensor" || kind == "distance";
  const bool fits =
      words.size() <= (alone ? 1 : most) && (!needs || words.size() >= 2) && (kind != "distance" || words.size() == 3);
  if (!fits) refuse(name);
  parse(model, words);
}

void Quantity::parse(const mjModel& model, const std::vector<std::string>& words) {
  const std::string& kind = words[0];
  const auto body = [&] {
    if (model.nbody < 2) throw std::invalid_argument("the model has no body.");
    return words.size() > 1 ? id_of(model, mjOBJ_BODY, words[1]) : 1;
  };
  const auto along = [&](const char* suffix) {
    return kind.size() == 1 + std::string(suffix).size() && kind.ends_with(suffix) && kind[0] >= 'x' && kind[0] <= 'z';
  };
  if (kind == "alive") {
    kind_ = Kind::kAlive;
  } else if (kind == "control_cost") {
    kind_ = Kind::kControlCost;
  } else if (kind == "contact_cost") {
    kind_ = Kind::kContactCost;
  } else if (kind == "forward_velocity" || along("_velocity")) {
    kind_ = Kind::kVelocity;
    index_ = kind[0] == 'f' ? 0 : kind[0] - 'x';
    body_ = body();
  } else if (along("_position")) {
    kind_ = Kind::kPosition;
    index_ = kind[0] - 'x';
    body_ = body();
  } else if (kind == "upright") {
    kind_ = Kind::kUpright;
    body_ = body();
  } else if (kind == "distance") {
    kind_ = Kind::kDistance;
    from_ = place(model, words[1]);
    to_ = place(model, words[2]);
  } else if (kind == "qpos" || kind == "qvel") {
    const Joint found = joint(model, words[1]);
    if (found.num_qpos != 1) {
      throw std::invalid_argument("joint '" + words[1] + "' has several numbers; a quantity is one.");
    }
    kind_ = kind == "qpos" ? Kind::kJointPosition : Kind::kJointVelocity;
    index_ = static_cast<int>(kind == "qpos" ? found.qpos : found.qvel);
  } else if (kind == "sensor") {
    const int id = id_of(model, mjOBJ_SENSOR, words[1]);
    const int size = model.sensor_dim[id];
    int index = 0;
    if (words.size() == 3) {
      const bool digits =
          !words[2].empty() && words[2].size() < 6 && words[2].find_first_not_of("0123456789") == std::string::npos;
      index = digits ? std::stoi(words[2]) : size;
    } else if (size != 1) {
      index = size;
    }
    if (index >= size) {
      throw std::invalid_argument("sensor '" + words[1] + "' has " + std::to_string(size) +
                                  " numbers; say which, as '" + "sensor:" + words[1] + ":0'.");
    }
    kind_ = Kind::kSensor;
    index_ = model.sensor_adr[id] + index;
  } else {
    refuse(kind);
  }
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
  } catch (const std::invalid_argument& failure) {
    const bool unknown = std::string(failure.what()).starts_with("there is no quantity");
    throw std::invalid_argument(failure.what() +
                                std::string(unknown ? " Observations also take: qpos, qvel, act, sensors." : ""));
  }
}

double* Observable::write(const Moment& moment, double* row) const {
  if (run_) return std::copy_n((moment.data.*run_->array) + run_->first, run_->size, row);
  *row = (*quantity_)(moment);
  return row + 1;
}

}  // namespace raceway::mujoco
