// MuJoCo without surprises: models that load or say why not, errors as exceptions, workspaces that threads share.
#pragma once

#include <mujoco/mujoco.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "lean.hpp"

namespace raceway::mujoco {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Deleter {
  void operator()(mjModel* model) const { mj_deleteModel(model); }
  void operator()(mjData* data) const { mj_deleteData(data); }
};
using Model = std::unique_ptr<mjModel, Deleter>;
using Data = std::unique_ptr<mjData, Deleter>;

// While it lives, MuJoCo's errors in this thread are thrown as Error, and its warnings, which are counted in the data,
// are neither printed nor written to a file.
class Guard {
 public:
  Guard();
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  mjfLogHandler before_;
};

Model load(const std::string& path);

int count_of(const mjModel& model, mjtObj type);  // bodies, joints, geoms, sites, actuators, sensors, keyframes

// The number of a body, site, ... by its name or, for those without one, its number as text. Refuses what is not there
// and lists what is.
int id_of(const mjModel& model, mjtObj type, const std::string& name);

// All that a simulation carries from one step to the next, if nothing but its controls is set from outside.
constexpr unsigned kCarried = mjSTATE_FULLPHYSICS | mjSTATE_WARMSTART;

// What MuJoCo may warn of, in the order of its counters, and what is found beside.
inline constexpr std::array kFaults{
    "the inertia matrix is (nearly) singular",
    "too many contacts: the contact buffer is full",
    "too many constraints: the constraint buffer is full",
    "a position is not finite or too large",
    "a velocity is not finite or too large",
    "an acceleration is not finite or too large",
    "a control is not finite or too large",
    "the state is not finite",
    "MuJoCo stopped with an error, such as a full stack",
};
static_assert(mjNWARNING == 7, "the faults name MuJoCo's warnings one by one");
constexpr std::uint8_t kNotFinite = 8, kStopped = 9;

// Steps `count` times, and writes what was carried into the last one. What went wrong, as a number of kFaults; 0:
// nothing.
std::uint8_t advance(const mjModel& model, mjData& data, int count, bool forces, double* into_last);

// Whether numbers that are carried can be set: where the model has delays, they hold positions in buffers.
bool can_be_carried(const mjModel& model, const double* carried);

// Workspaces for the environments of one model. An environment keeps only what it carries from step to step; the rest
// of MuJoCo's data, a hundred times as much, is scratch that belongs to whichever thread is stepping. So it stays in
// that thread's cache, and thousands of environments need no more of it than there are threads.
class Simulators {
 public:
  // Workspaces start from a keyframe, if it is not -1.
  Simulators(const mjModel& model, int keyframe) : model_(model), keyframe_(keyframe) {}
  ~Simulators();
  Simulators(const Simulators&) = delete;
  Simulators& operator=(const Simulators&) = delete;

  // A workspace on loan. One in which a simulation went wrong is discarded: nobody knows what is left in it.
  class Loan {
   public:
    explicit Loan(Simulators& owner);
    ~Loan();
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;

    mjData& operator*() const { return *data_; }
    mjData* operator->() const { return data_; }
    void discard() { sound_ = false; }

   private:
    Guard guard_;
    Simulators& owner_;
    const int exceptions_;
    mjData* data_;
    bool sound_ = true;
  };

 private:
  static constexpr std::size_t kSlots = 64;
  struct alignas(64) Slot {
    std::atomic<mjData*> data{nullptr};
  };

  mjData* take();
  void give_back(mjData* data);

  const mjModel& model_;
  const int keyframe_;
  std::array<Slot, kSlots> slots_;
};

// A model, and the workspaces of those who step it.
struct World {
  World(Model loaded, int key) : model(std::move(loaded)), lean(*model), keyframe(key), simulators(lean.model(), key) {}

  const Model model;     // where names are looked up
  const LeanModel lean;  // what is stepped
  const int keyframe;    // where episodes start; -1: at the model's reference
  Simulators simulators;
};

}  // namespace raceway::mujoco
