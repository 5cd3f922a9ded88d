#include "variation.hpp"

#include <algorithm>
#include <cmath>
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
};

constexpr FieldSpec kFields[] = {
    {"mass", Field::kMass, mjOBJ_BODY, true},
    {"friction", Field::kFriction, mjOBJ_GEOM, false},
    {"gain", Field::kGain, mjOBJ_ACTUATOR, false},
    {"damping", Field::kDamping, mjOBJ_JOINT, false},
    {"stiffness", Field::kStiffness, mjOBJ_JOINT, false},
    {"armature", Field::kArmature, mjOBJ_JOINT, false},
    {"frictionloss", Field::kFrictionLoss, mjOBJ_JOINT, false},
    {"gravity", Field::kGravity, mjOBJ_UNKNOWN, false},
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

int count_of(const mjModel& model, mjtObj type) {
  switch (type) {
    case mjOBJ_BODY:
      return static_cast<int>(model.nbody);
    case mjOBJ_GEOM:
      return static_cast<int>(model.ngeom);
    case mjOBJ_ACTUATOR:
      return static_cast<int>(model.nu);
    case mjOBJ_JOINT:
      return static_cast<int>(model.njnt);
    default:
      return 1;
  }
}

void check(const FieldSpec& spec, const NamedRange& range) {
  const bool good = std::isfinite(range.low) && std::isfinite(range.high) && range.low >= 0.0;
  if (good && (range.low > 0.0 || !spec.positive)) return;
  throw std::invalid_argument("randomize['" + range.name + "'] goes from " + std::to_string(range.low) + " to " +
                              std::to_string(range.high) + ". A factor is finite and " +
                              (spec.positive ? "above 0." : "0 or more."));
}

std::size_t size(mjtSize count, int width) {
  return static_cast<std::size_t>(count) * static_cast<std::size_t>(width);
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
      if (named && spec.type == mjOBJ_UNKNOWN) {
        throw std::invalid_argument("randomize['" + range.name + "']: " + spec.name + " has no parts.");
      }
      const int only = named ? id_of(model, spec.type, range.name.substr(colon + 1)) : -1;
      const int first = spec.field == Field::kMass ? 1 : 0;  // the world has no mass
      for (int i = first; i < count_of(model, spec.type); ++i) {
        if (only < 0 || only == i) parts[{spec.field, i}] = {spec.field, i, range.low, range.high};
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

bool Variation::allows(const std::vector<double>& factors) const {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (!(factors[i] >= parts_[i].low && factors[i] <= parts_[i].high)) return false;
  }
  return true;
}

VariedModel::VariedModel(const mjModel& shared, const Variation& variation)
    : shared_(shared),
      variation_(variation),
      model_(shared),
      derives_(variation.varies(Field::kMass) || variation.varies(Field::kArmature)) {
  if (variation.varies(Field::kMass)) {
    own(&mjModel::body_mass, size(shared.nbody, 1));
    own(&mjModel::body_inertia, size(shared.nbody, 3));
  }
  if (variation.varies(Field::kFriction)) own(&mjModel::geom_friction, size(shared.ngeom, 3));
  if (variation.varies(Field::kGain)) {
    own(&mjModel::actuator_gainprm, size(shared.nu, mjNGAIN));
    own(&mjModel::actuator_biasprm, size(shared.nu, mjNBIAS));
  }
  if (variation.varies(Field::kDamping)) own(&mjModel::dof_damping, size(shared.nv, 1));
  if (variation.varies(Field::kStiffness)) own(&mjModel::jnt_stiffness, size(shared.njnt, 1));
  if (variation.varies(Field::kArmature)) own(&mjModel::dof_armature, size(shared.nv, 1));
  if (variation.varies(Field::kFrictionLoss)) own(&mjModel::dof_frictionloss, size(shared.nv, 1));
  if (derives_) own_derived();
}

void VariedModel::own(mjtNum* mjModel::* array, std::size_t count) {
  arrays_.push_back(std::make_unique<mjtNum[]>(count));
  std::copy_n(shared_.*array, count, arrays_.back().get());
  model_.*array = arrays_.back().get();
}

// All that mj_setConst writes, were it only the same numbers again: other threads are reading the shared ones.
void VariedModel::own_derived() {
  own(&mjModel::body_subtreemass, size(shared_.nbody, 1));
  own(&mjModel::body_invweight0, size(shared_.nbody, 2));
  own(&mjModel::dof_invweight0, size(shared_.nv, 1));
  own(&mjModel::dof_M0, size(shared_.nv, 1));
  own(&mjModel::tendon_length0, size(shared_.ntendon, 1));
  own(&mjModel::tendon_invweight0, size(shared_.ntendon, 1));
  own(&mjModel::tendon_lengthspring, size(shared_.ntendon, 2));
  own(&mjModel::actuator_length0, size(shared_.nu, 1));
  own(&mjModel::actuator_acc0, size(shared_.nu, 1));
  own(&mjModel::cam_pos0, size(shared_.ncam, 3));
  own(&mjModel::cam_poscom0, size(shared_.ncam, 3));
  own(&mjModel::cam_mat0, size(shared_.ncam, 9));
  own(&mjModel::light_pos0, size(shared_.nlight, 3));
  own(&mjModel::light_poscom0, size(shared_.nlight, 3));
  own(&mjModel::light_dir0, size(shared_.nlight, 3));
}

void VariedModel::apply(const std::vector<double>& factors, mjData& scratch) {
  const auto scale = [this](mjtNum* mjModel::* array, int first, int count, double factor) {
    for (int i = first; i < first + count; ++i) (model_.*array)[i] = (shared_.*array)[i] * factor;
  };
  const auto dofs = [&](mjtNum* mjModel::* array, int joint, double factor) {
    static constexpr int kDofs[] = {6, 3, 1, 1};  // of free, ball, slide and hinge
    scale(array, shared_.jnt_dofadr[joint], kDofs[shared_.jnt_type[joint]], factor);
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
        dofs(&mjModel::dof_damping, index, factor);
        break;
      case Field::kStiffness:
        scale(&mjModel::jnt_stiffness, index, 1, factor);
        break;
      case Field::kArmature:
        dofs(&mjModel::dof_armature, index, factor);
        break;
      case Field::kFrictionLoss:
        dofs(&mjModel::dof_frictionloss, index, factor);
        break;
      case Field::kGravity:
        for (int axis = 0; axis < 3; ++axis) model_.opt.gravity[axis] = shared_.opt.gravity[axis] * factor;
        break;
    }
  }
  if (derives_) mj_setConst(&model_, &scratch);
}

}  // namespace raceway::mujoco
