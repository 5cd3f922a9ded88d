#include "lean.hpp"

#include <algorithm>
#include <tuple>

namespace raceway::mujoco {
namespace {

bool match(const mjModel& model, int i, int j) {
  return (model.geom_contype[i] & model.geom_conaffinity[j]) != 0 ||
         (model.geom_contype[j] & model.geom_conaffinity[i]) != 0;
}

// Whether MuJoCo would look at bodies a and b at all: not within a body, nor between a body and its parent.
bool apart(const mjModel& model, int a, int b) {
  const int first = model.body_weldid[a], second = model.body_weldid[b];
  if (first == second) return false;
  if ((model.opt.disableflags & mjDSBL_FILTERPARENT) != 0) return true;
  const int above_first = model.body_weldid[model.body_parentid[first]];
  const int above_second = model.body_weldid[model.body_parentid[second]];
  return first == 0 || second == 0 || (first != above_second && second != above_first);
}

bool is_plane(const mjModel& model, int geom) {
  return model.geom_type[geom] == mjGEOM_PLANE;
}

bool equal(const mjtNum* a, const mjtNum* b, int count) {
  return std::equal(a, a + count, b);
}

// Whether what a contact of these geoms is given can be said in advance without rounding.
bool mixes_plainly(const mjModel& model, int i, int j) {
  const auto plain = [&](int geom) {
    return model.geom_gap[geom] == 0.0 && model.geom_adhesion[geom] == 0.0 && model.geom_solmix[geom] == 1.0 &&
           std::all_of(model.geom_surfacevel + 6 * geom, model.geom_surfacevel + 6 * geom + 6,
                       [](mjtNum velocity) { return velocity == 0.0; });
  };
  return plain(i) && plain(j) && model.geom_priority[i] == model.geom_priority[j] &&
         equal(model.geom_solref + mjNREF * i, model.geom_solref + mjNREF * j, mjNREF) &&
         equal(model.geom_solimp + mjNIMP * i, model.geom_solimp + mjNIMP * j, mjNIMP);
}

}  // namespace

LeanModel::LeanModel(const mjModel& whole) : model_(whole) {
  model_.buffer = nullptr;  // it belongs to the other
  model_.nbuffer = 0;
  if (whole.ntree <= 1) model_.opt.disableflags |= mjDSBL_ISLAND;
  if (whole.npair > 0 || whole.nflex > 0) return;
  std::vector<Pair> pairs;
  bool any = false;
  for (int i = 0; i < whole.ngeom; ++i) {
    for (int j = i + 1; j < whole.ngeom; ++j) {
      if (!match(whole, i, j)) continue;
      any = true;
      const int a = whole.geom_bodyid[i], b = whole.geom_bodyid[j];
      if (apart(whole, a, b)) pairs.push_back({(std::min(a, b) << 16) + std::max(a, b), i, j});
    }
  }
  if (!any) {
    model_.opt.disableflags |= mjDSBL_CONTACT;
  } else if (!pairs.empty() && may_list(whole, pairs)) {
    list(pairs);
  }
}

// Only where the order is beyond doubt: bodies of one geom each, or of two where they meet nothing but a plane.
bool LeanModel::may_list(const mjModel& model, const std::vector<Pair>& pairs) {
  if (model.nexclude > 0 || model.opt.enableflags != 0 || pairs.size() > 8 * static_cast<std::size_t>(model.ngeom)) {
    return false;
  }
  for (const Pair& pair : pairs) {
    const int planes = is_plane(model, pair.geom1) + is_plane(model, pair.geom2);
    for (const int geom : {pair.geom1, pair.geom2}) {
      const int count = model.body_geomnum[model.geom_bodyid[geom]];
      if (count > (planes == 1 && !is_plane(model, geom) ? 2 : 1)) return false;
    }
    if (!mixes_plainly(model, pair.geom1, pair.geom2)) return false;
  }
  return true;
}

void LeanModel::list(const std::vector<Pair>& pairs) {
  std::vector<Pair> sorted = pairs;
  std::sort(sorted.begin(), sorted.end(), [](const Pair& a, const Pair& b) {
    return std::tie(a.signature, a.geom1, a.geom2) < std::tie(b.signature, b.geom1, b.geom2);
  });
  const std::size_t count = sorted.size();
  gap_.assign(count, 0.0);
  adhesion_.assign(count, 0.0);
  solreffriction_.assign(mjNREF * count, 0.0);
  friction_.resize(5 * count);
  for (const auto& [signature, i, j] : sorted) {
    signature_.push_back(signature);
    geom1_.push_back(i);
    geom2_.push_back(j);
    dim_.push_back(std::max(model_.geom_condim[i], model_.geom_condim[j]));
    margin_.push_back(model_.geom_margin[i] + model_.geom_margin[j]);
    solref_.insert(solref_.end(), model_.geom_solref + mjNREF * i, model_.geom_solref + mjNREF * (i + 1));
    solimp_.insert(solimp_.end(), model_.geom_solimp + mjNIMP * i, model_.geom_solimp + mjNIMP * (i + 1));
  }
  model_.npair = static_cast<mjtSize>(count);
  model_.pair_dim = dim_.data();
  model_.pair_geom1 = geom1_.data();
  model_.pair_geom2 = geom2_.data();
  model_.pair_signature = signature_.data();
  model_.pair_solref = solref_.data();
  model_.pair_solreffriction = solreffriction_.data();
  model_.pair_solimp = solimp_.data();
  model_.pair_margin = margin_.data();
  model_.pair_gap = gap_.data();
  model_.pair_adhesion = adhesion_.data();
  model_.pair_friction = friction_.data();
  for (std::size_t i = 0; i < count; ++i) mix_friction(model_, static_cast<int>(i), friction_.data() + 5 * i);
  geom_zeros_.assign(static_cast<std::size_t>(model_.ngeom), 0);
  body_zeros_.assign(static_cast<std::size_t>(model_.nbody), 0);
  model_.geom_contype = model_.geom_conaffinity = geom_zeros_.data();
  model_.body_contype = model_.body_conaffinity = body_zeros_.data();
}

void LeanModel::mix_friction(const mjModel& model, int pair, mjtNum* friction) {
  const mjtNum* a = model.geom_friction + 3 * model.pair_geom1[pair];
  const mjtNum* b = model.geom_friction + 3 * model.pair_geom2[pair];
  friction[0] = friction[1] = std::max(a[0], b[0]);
  friction[2] = std::max(a[1], b[1]);
  friction[3] = friction[4] = std::max(a[2], b[2]);
}

}  // namespace raceway::mujoco
