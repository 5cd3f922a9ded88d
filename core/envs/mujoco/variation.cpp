#include "variation.hpp"

#include <mujoco/mjxmacro.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <map>

#include "simulator.hpp"

namespace raceway::mujoco {
namespace {

using Field = Variation::Field;

struct FieldSpec {
  const char* name;
  Field field;
  mjtObj type;    // whose parts have names
  bool positive;  // whether a factor of zero is refused
  std::vector<const char*> arrays;
};

const FieldSpec kFields[] = {
    {"mass", Field::kMass, mjOBJ_BODY, true, {"body_mass", "body_inertia"}},
    {"friction", Field::kFriction, mjOBJ_GEOM, false, {"geom_friction"}},
    {"gain", Field::kGain, mjOBJ_ACTUATOR, false, {"actuator_gainprm", "actuator_biasprm"}},
    {"damping", Field::kDamping, mjOBJ_JOINT, false, {"dof_damping", "dof_dampingpoly"}},
    {"stiffness", Field::kStiffness, mjOBJ_JOINT, false, {"jnt_stiffness", "jnt_stiffnesspoly"}},
    {"armature", Field::kArmature, mjOBJ_JOINT, false, {"dof_armature"}},
    {"frictionloss", Field::kFrictionLoss, mjOBJ_JOINT, false, {"dof_frictionloss"}},
    {"gravity", Field::kGravity, mjOBJ_UNKNOWN, false, {}},
};

const FieldSpec& spec_of(const std::string& key) {
  const std::string name = key.substr(0, key.find(':'));
  std::string known;
  for (const FieldSpec& spec : kFields) {
    if (name == spec.name) return spec;
    known += (known.empty() ? "" : ", ") + std::string(spec.name);
  }
  throw std::invalid_argument("randomize has no '" + name + "'. There are: " + known +
                              "; each also for one part, such as 'mass:torso'.");
}

void check(const FieldSpec& spec, const NamedRange& range) {
  const bool good = std::isfinite(range.low) && std::isfinite(range.high) && range.low >= 0.0;
  if (good && (range.low > 0.0 || !spec.positive)) return;
  throw std::invalid_argument("randomize['" + range.name + "'] goes from " + std::to_string(range.low) + " to " +
                              std::to_string(range.high) + ". A factor is finite and " +
                              (spec.positive ? "above 0." : "0 or more."));
}

int part_of(const mjModel& model, const FieldSpec& spec, const std::string& key) {
  try {
    if (spec.type == mjOBJ_UNKNOWN) throw std::invalid_argument(std::string(spec.name) + " has no parts.");
    const int id = id_of(model, spec.type, key.substr(key.find(':') + 1));
    if (spec.field == Field::kMass && id == 0) throw std::invalid_argument("the world has no mass.");
    return id;
  } catch (const std::invalid_argument& failure) {
    throw std::invalid_argument("randomize['" + key + "']: " + failure.what());
  }
}

// Of muscles and the like, the parameters are not factors of the force.
void check_linear(const mjModel& model, int actuator) {
  const auto linear = [](int type) { return type == mjGAIN_FIXED || type == mjGAIN_AFFINE; };
  const int bias = model.actuator_biastype[actuator];
  if (linear(model.actuator_gaintype[actuator]) && (bias == mjBIAS_NONE || bias == mjBIAS_AFFINE)) return;
  const char* name = mj_id2name(&model, mjOBJ_ACTUATOR, actuator);
  throw std::invalid_argument("randomize['gain']: actuator '" + std::string(name ? name : std::to_string(actuator)) +
                              "' has no gain that a factor could scale. Name the others, such as 'gain:hip'.");
}

}  // namespace

// A named part goes before the whole: {"mass": (0.8, 1.2), "mass:torso": 1.0} leaves the torso as it is.
Variation::Variation(const mjModel& model, const std::vector<NamedRange>& ranges) {
  std::map<std::pair<Field, int>, Part> parts;
  for (const bool named : {false, true}) {
    for (const NamedRange& range : ranges) {
      const auto colon = range.name.find(':');
      if ((colon != std::string::npos) != named) continue;
      const FieldSpec& spec = spec_of(range.name);
      check(spec, range);
      const int only = named ? part_of(model, spec, range.name) : -1;
      const int first = spec.field == Field::kMass ? 1 : 0;  // the world has no mass
      const int end = spec.type == mjOBJ_UNKNOWN ? 1 : count_of(model, spec.type);
      for (int i = first; i < end; ++i) {
        if (only >= 0 && only != i) continue;
        if (spec.field == Field::kGain) check_linear(model, i);
        parts[{spec.field, i}] = {spec.field, i, range.low, range.high};
      }
    }
  }
  for (const auto& [key, part] : parts) parts_.push_back(part);
}

bool Variation::varies(Field field) const {
  return std::any_of(parts_.begin(), parts_.end(), [field](const Part& part) { return part.field == field; });
}

void Variation::draw(Random& random, std::vector<double>& factors) const {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    factors[i] = part.low == part.high ? part.low : random.uniform(part.low, part.high);
  }
}

std::vector<double> Variation::lowest() const {
  std::vector<double> factors;
  for (const Part& part : parts_) factors.push_back(part.low);
  return factors;
}

std::string Variation::flaw(const std::vector<double>& factors) const {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (factors[i] >= parts_[i].low && factors[i] <= parts_[i].high) continue;
    return "factors has " + std::to_string(factors[i]) + ", outside " + std::to_string(parts_[i].low) + " to " +
           std::to_string(parts_[i].high);
  }
  return "";
}

VariedModel::VariedModel(const LeanModel& shared, const Variation& variation)
    : shared_(shared.model()),
      mixes_friction_(shared.lists_pairs() && variation.varies(Field::kFriction)),
      variation_(variation),
      model_(shared.model()),
      derives_(variation.varies(Field::kMass) || variation.varies(Field::kArmature)) {
  for (const FieldSpec& spec : kFields) {
    if (!variation.varies(spec.field)) continue;
    for (const char* array : spec.arrays) own(array);
  }
  if (mixes_friction_) own("pair_friction");
  if (!derives_) return;
  // All that mj_setConst writes, were it only the same numbers again: other threads are reading the shared ones.
#define X(name, fixed, kin0, inert0, spring) \
  if constexpr ((((fixed) | (kin0) | (inert0) | (spring)) & mjSC_OUT) != 0) own(#name);
  MJSETCONST_ARRAYS
#undef X
}

// Gives this model its own copy of an array. MJ_M is how MuJoCo's list of arrays names the model's sizes.
#undef MJ_M
#define MJ_M(size) shared_.size
void VariedModel::own(std::string_view array) {
#define X(type, name, rows, columns)                                                               \
  if (array == #name) {                                                                            \
    const std::size_t bytes =                                                                      \
        static_cast<std::size_t>(shared_.rows) * static_cast<std::size_t>(columns) * sizeof(type); \
    arrays_.push_back(std::make_unique<std::max_align_t[]>(bytes / sizeof(std::max_align_t) + 1)); \
    if (bytes > 0) std::memcpy(arrays_.back().get(), shared_.name, bytes);                         \
    model_.name = reinterpret_cast<type*>(arrays_.back().get());                                   \
  }
#define XNV X
  MJMODEL_POINTERS
#undef XNV
#undef X
}

void VariedModel::apply(const std::vector<double>& factors, mjData& scratch) {
  const auto scale = [this](mjtNum* mjModel::* array, int first, int count, double factor) {
    for (int i = first; i < first + count; ++i) (model_.*array)[i] = (shared_.*array)[i] * factor;
  };
  const auto dofs = [&](mjtNum* mjModel::* array, int joint, int width, double factor) {
    static constexpr int kDofs[] = {6, 3, 1, 1};  // of free, ball, slide and hinge
    scale(array, width * shared_.jnt_dofadr[joint], width * kDofs[shared_.jnt_type[joint]], factor);
  };
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const int index = variation_.parts()[i].index;
    const double factor = factors[i];
    switch (variation_.parts()[i].field) {
      case Field::kMass:
        scale(&mjModel::body_mass, index, 1, factor);
        scale(&mjModel::body_inertia, 3 * index, 3, factor);
        break;
      case Field::kFriction:
        scale(&mjModel::geom_friction, 3 * index, 3, factor);
        break;
      case Field::kGain:
        scale(&mjModel::actuator_gainprm, mjNGAIN * index, 3, factor);
        scale(&mjModel::actuator_biasprm, mjNBIAS * index, 3, factor);
        break;
      case Field::kDamping:
        dofs(&mjModel::dof_damping, index, 1, factor);
        dofs(&mjModel::dof_dampingpoly, index, mjNPOLY, factor);
        break;
      case Field::kStiffness:
        scale(&mjModel::jnt_stiffness, index, 1, factor);
        scale(&mjModel::jnt_stiffnesspoly, mjNPOLY * index, mjNPOLY, factor);
        break;
      case Field::kArmature:
        dofs(&mjModel::dof_armature, index, 1, factor);
        break;
      case Field::kFrictionLoss:
        dofs(&mjModel::dof_frictionloss, index, 1, factor);
        break;
      case Field::kGravity:
        for (int axis = 0; axis < 3; ++axis) model_.opt.gravity[axis] = shared_.opt.gravity[axis] * factor;
        break;
    }
  }
  for (int i = 0; mixes_friction_ && i < model_.npair; ++i) {
    LeanModel::mix_friction(model_, i, model_.pair_friction + 5 * i);
  }
  if (derives_) mj_setConst(&model_, &scratch);
}

}  // namespace raceway::mujoco
