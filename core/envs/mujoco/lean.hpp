// A model without the work that it has no use for. No result changes by a bit.
#pragma once

#include <mujoco/mujoco.h>

#include <vector>

namespace raceway::mujoco {

// MuJoCo's struct over the arrays of another model, which must outlive it, with some switches and arrays of its own.
//
// - A single kinematic tree has a single constraint island: islands are not looked for.
// - Where no two geoms may collide, contacts are not looked for.
// - Where few may, such as the parts of a robot with the floor, they are listed once as pairs, in the order in which
//   MuJoCo would find them, instead of being searched for at every step.
//
// Names must be looked up in the other model: MuJoCo finds them by counts, and that of pairs is another here.
class LeanModel {
 public:
  explicit LeanModel(const mjModel& whole);
  LeanModel(const LeanModel&) = delete;
  LeanModel& operator=(const LeanModel&) = delete;

  const mjModel& model() const { return model_; }
  bool lists_pairs() const { return !geom1_.empty(); }

  // A pair's friction follows from its geoms'.
  static void mix_friction(const mjModel& model, int pair, mjtNum* friction);

 private:
  struct Pair {
    int signature, geom1, geom2;
  };

  static bool may_list(const mjModel& model, const std::vector<Pair>& pairs);
  void list(const std::vector<Pair>& pairs);

  mjModel model_;
  std::vector<int> dim_, geom1_, geom2_, signature_, geom_zeros_, body_zeros_;
  std::vector<mjtNum> solref_, solreffriction_, solimp_, margin_, gap_, adhesion_, friction_;
};

}  // namespace raceway::mujoco
