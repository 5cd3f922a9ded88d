// Models whose masses, friction, gains, ... differ from environment to environment and from episode to episode.
#pragma once

#include <mujoco/mujoco.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../../env.hpp"
#include "lean.hpp"

namespace raceway::mujoco {

// Which parts of a model are multiplied by a factor, and from where to where each factor is drawn.
class Variation {
 public:
  enum class Field { kMass, kFriction, kGain, kDamping, kStiffness, kArmature, kFrictionLoss, kGravity };
  struct Part {
    Field field;
    int index;
    double low, high;
  };

  Variation(const mjModel& model, const std::vector<NamedRange>& ranges);

  bool empty() const { return parts_.empty(); }
  std::size_t size() const { return parts_.size(); }
  const std::vector<Part>& parts() const { return parts_; }
  bool varies(Field field) const;

  void draw(Random& random, std::vector<double>& factors) const;
  std::vector<double> lowest() const;
  std::string flaw(const std::vector<double>& factors) const;

 private:
  std::vector<Part> parts_;
};

// A model of one environment: MuJoCo's struct, with arrays of its own where they differ and the shared ones elsewhere.
class VariedModel {
 public:
  VariedModel(const LeanModel& shared, const Variation& variation);

  const mjModel& model() const { return model_; }
  // `scratch` is left in any state.
  void apply(const std::vector<double>& factors, mjData& scratch);

 private:
  void own(std::string_view array);

  const mjModel& shared_;
  const bool mixes_friction_;  // whether that of pairs follows from the geoms'
  const Variation& variation_;
  mjModel model_;
  std::vector<std::unique_ptr<std::max_align_t[]>> arrays_;
  bool derives_;  // whether constants follow from what is varied
};

}  // namespace raceway::mujoco
