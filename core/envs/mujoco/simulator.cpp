#include "simulator.hpp"

#include <cmath>
#include <cstring>

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

Guard::Guard() {
  _mjPRIVATE_setTlsLogHandler(handle);
}

Guard::~Guard() {
  _mjPRIVATE_setTlsLogHandler(nullptr);
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
  return Model(model);
}

int id_of(const mjModel& model, mjtObj type, const std::string& name) {
  const int id = mj_name2id(&model, type, name.c_str());
  if (id >= 0) return id;
  std::string known;
  for (int i = 0; const char* each = mj_id2name(&model, type, i); ++i) {
    if (*each == '\0') continue;
    known += (known.empty() ? "" : ", ") + std::string(each);
  }
  throw std::invalid_argument("the model has no " + std::string(mju_type2Str(type)) + " called '" + name +
                              "'. There are: " + (known.empty() ? "none with a name" : known) + ".");
}

std::uint8_t advance(const mjModel& model, mjData& data, int count, bool forces) {
  try {
    for (int i = 0; i < count; ++i) mj_step(&model, &data);
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

Simulators::~Simulators() {
  for (Slot& slot : slots_) mj_deleteData(slot.data.load());
}

mjData* Simulators::take() {
  for (std::size_t i = 0; i < kSlots; ++i) {
    std::atomic<mjData*>& slot = slots_[(home_slot() + i) % kSlots].data;
    if (slot.load(std::memory_order_relaxed) == nullptr) continue;
    if (mjData* data = slot.exchange(nullptr, std::memory_order_acquire)) return data;
  }
  mjData* data = mj_makeData(&model_);
  if (!data) throw std::bad_alloc();
  return data;
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
