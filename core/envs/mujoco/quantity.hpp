// Numbers of a simulation that have a name, such as "z_position:torso": what rewards, ends of episodes and observations
// of a user's own robot are made of.
#pragma once

#include <mujoco/mujoco.h>

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace raceway::mujoco {

// What a quantity is computed from, beside MuJoCo's data.
struct Moment {
  const mjModel& model;
  const mjData& data;
  const double* previous_xpos;  // three numbers per body, one step ago
  double seconds;               // that lie between
  bool alive;
};

class Quantity {
 public:
  // Refuses a name that says nothing, or an object that the model does not have.
  Quantity(const mjModel& model, const std::string& name);

  double operator()(const Moment& moment) const;
  bool reads_forces() const { return kind_ == Kind::kContactCost; }

  // The names there are, for messages.
  static std::string known();

 private:
  enum class Kind {
    kAlive,
    kControlCost,
    kContactCost,
    kVelocity,
    kPosition,
    kUpright,
    kDistance,
    kJointPosition,
    kJointVelocity,
    kSensor
  };
  // A site or a body.
  struct Place {
    bool site;
    int id;
    const mjtNum* of(const mjData& data) const { return (site ? data.site_xpos : data.xpos) + 3 * id; }
  };

  static Place place(const mjModel& model, const std::string& name);
  static int sensor_number(const mjModel& model, const std::vector<std::string>& words);

  Kind kind_ = Kind::kAlive;
  int index_ = 0;  // of the number in its array, or of the axis
  int body_ = 1;
  Place from_{}, to_{};
};

struct UnknownQuantity : std::invalid_argument {
  explicit UnknownQuantity(const std::string& name)
      : std::invalid_argument("there is no quantity '" + name + "'. There are: " + Quantity::known() + ".") {}
};

// A run of numbers: all positions, one joint's, a sensor's, or a single quantity.
class Observable {
 public:
  Observable(const mjModel& model, const std::string& name);

  std::size_t size() const { return run_ ? run_->size : 1; }
  bool reads_forces() const { return quantity_ && quantity_->reads_forces(); }
  double* write(const Moment& moment, double* row) const;

 private:
  struct Run {
    mjtNum* mjData::* array;
    std::size_t first, size;
  };
  static std::optional<Run> run_of(const mjModel& model, const std::string& name);

  std::optional<Run> run_;  // either this or a quantity
  std::optional<Quantity> quantity_;
};

}  // namespace raceway::mujoco
