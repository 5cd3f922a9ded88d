#include "simulator.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

// Not in MuJoCo's headers, but exported for its own bindings: a handler for this thread alone. It returns the one
// before.
extern "C" mjfLogHandler _mjPRIVATE_setTlsLogHandler(mjfLogHandler handler);

namespace raceway::mujoco {
namespace {

void handle(const mjLogMessage* message) {
  if (message->level >= mjLOG_ERROR) throw Error(message->subject);
}

// Where a thread looks first for a workspace: its own place, so that it finds what it left there.
std::size_t home_slot() {
  static std::atomic<std::size_t> threads{0};
  thread_local const std::size_t slot = threads.fetch_add(1, std::memory_order_relaxed);
  return slot;
}

std::uint8_t first_warning(const mjData& data) {
  for (std::uint8_t i = 0; i < mjNWARNING; ++i) {
    if (data.warning[i].number > 0) return static_cast<std::uint8_t>(i + 1);
  }
  return 0;
}

bool finite(const mjtNum* values, std::size_t count) {
  double sum = 0.0;  // 0 * x is 0 unless x is infinite or not a number
  for (std::size_t i = 0; i < count; ++i) sum += 0.0 * values[i];
  return sum == 0.0;
}

}  // namespace

Guard::Guard() : before_(_mjPRIVATE_setTlsLogHandler(handle)) {}

Guard::~Guard() {
  _mjPRIVATE_setTlsLogHandler(before_);
}

Model load(const std::string& path) {
  const Guard guard;
  char error[1024] = "";
  mjModel* model = nullptr;
  try {
    model = mj_loadXML(path.c_str(), nullptr, error, sizeof error);
  } catch (const Error& failure) {
    throw std::invalid_argument("xml_file=" + path + " is no model that MuJoCo can use: " + failure.what());
  }
  if (!model) throw std::invalid_argument("xml_file=" + path + " is no model that MuJoCo can use: " + error);
  Model loaded(model);
  if ((model->opt.enableflags & mjENBL_SLEEP) != 0) {
    throw std::invalid_argument("xml_file=" + path +
                                " lets bodies sleep, and what sleeps is not part of MuJoCo's state: an environment "
                                "could not be saved. Remove the flag sleep=\"enable\".");
  }
  if (model->nplugin > 0) {
    throw std::invalid_argument("xml_file=" + path +
                                " uses plugins, whose memory is not part of MuJoCo's state: an environment could not "
                                "be saved. Remove them.");
  }
  if (model->nu == 0) {
    throw std::invalid_argument("xml_file=" + path + " has no actuator: there is nothing to act with.");
  }
  return loaded;
}

int count_of(const mjModel& model, mjtObj type) {
  switch (type) {
    case mjOBJ_BODY:
      return static_cast<int>(model.nbody);
    case mjOBJ_JOINT:
      return static_cast<int>(model.njnt);
    case mjOBJ_GEOM:
      return static_cast<int>(model.ngeom);
    case mjOBJ_SITE:
      return static_cast<int>(model.nsite);
    case mjOBJ_ACTUATOR:
      return static_cast<int>(model.nactuator);
    case mjOBJ_SENSOR:
      return static_cast<int>(model.nsensor);
    case mjOBJ_KEY:
      return static_cast<int>(model.nkey);
    default:
      return 0;
  }
}

int id_of(const mjModel& model, mjtObj type, const std::string& name) {
  const int id = mj_name2id(&model, type, name.c_str());
  if (id >= 0) return id;
  const int count = count_of(model, type);
  const bool digits = !name.empty() && name.size() < 9 && name.find_first_not_of("0123456789") == std::string::npos;
  if (digits && std::stoi(name) < count) return std::stoi(name);
  std::string known;
  for (int i = 0; i < count; ++i) {
    const char* each = mj_id2name(&model, type, i);
    known += (i == 0 ? "" : ", ") + (each && *each ? std::string(each) : std::to_string(i));
  }
  throw std::invalid_argument("the model has no " + std::string(mju_type2Str(type)) + " '" + name +
                              "'. There are: " + (known.empty() ? "none" : known) + ".");
}

std::uint8_t advance(const mjModel& model, mjData& data, int count, bool forces, double* into_last) {
  try {
    for (int i = 1; i < count; ++i) mj_step(&model, &data);
    mj_getState(&model, &data, into_last, kCarried);
    mj_step(&model, &data);
    if (forces) mj_rnePostConstraint(&model, &data);
  } catch (const Error&) {
    return kStopped;
  }
  if (const std::uint8_t warning = first_warning(data)) return warning;
  const bool sound = finite(data.qpos, static_cast<std::size_t>(model.nq)) &&
                     finite(data.qvel, static_cast<std::size_t>(model.nv)) &&
                     finite(data.act, static_cast<std::size_t>(model.na));
  return sound ? 0 : kNotFinite;
}

// A buffer is its user's number, the position of its newest entry, then times and values.
bool can_be_carried(const mjModel& model, const double* carried) {
  if (model.nhistory == 0) return true;
  const double* buffers = carried + mj_stateSize(&model, mjSTATE_TIME | mjSTATE_QPOS | mjSTATE_QVEL | mjSTATE_ACT);
  const auto sound = [buffers](const int* addresses, const int* sizes, int count) {
    for (int i = 0; i < count; ++i) {
      if (addresses[i] < 0) continue;
      const double position = buffers[addresses[i] + 1];
      if (!(position >= 0.0 && position < sizes[2 * i] && position == std::floor(position))) return false;
    }
    return true;
  };
  return sound(model.actuator_historyadr, model.actuator_history, static_cast<int>(model.nactuator)) &&
         sound(model.sensor_historyadr, model.sensor_history, static_cast<int>(model.nsensor));
}

Simulators::~Simulators() {
  for (Slot& slot : slots_) mj_deleteData(slot.data.load());
}

mjData* Simulators::take() {
  for (std::size_t i = 0; i < kSlots; ++i) {
    std::atomic<mjData*>& slot = slots_[(home_slot() + i) % kSlots].data;
    if (slot.load(std::memory_order_relaxed) == nullptr) continue;
    mjData* data = slot.exchange(nullptr, std::memory_order_acquire);
    if (!data) continue;
    std::fill(std::begin(data->warning), std::end(data->warning), mjWarningStat{});  // they were another's
    return data;
  }
  Data data(mj_makeData(&model_));
  if (!data) throw std::bad_alloc();
  if (keyframe_ >= 0) mj_resetDataKeyframe(&model_, data.get(), keyframe_);
  return data.release();
}

void Simulators::give_back(mjData* data) {
  for (std::size_t i = 0; i < kSlots; ++i) {
    mjData* empty = nullptr;
    std::atomic<mjData*>& slot = slots_[(home_slot() + i) % kSlots].data;
    if (slot.compare_exchange_strong(empty, data, std::memory_order_release, std::memory_order_relaxed)) return;
  }
  mj_deleteData(data);
}

Simulators::Loan::Loan(Simulators& owner)
    : owner_(owner), exceptions_(std::uncaught_exceptions()), data_(owner.take()) {}

Simulators::Loan::~Loan() {
  if (!sound_ || std::uncaught_exceptions() > exceptions_) {
    mj_deleteData(data_);
  } else {
    owner_.give_back(data_);
  }
}

}  // namespace raceway::mujoco
