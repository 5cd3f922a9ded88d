// The bare loops of every built-in task as a module of its own, `benchmarks._bare_loops`: users do not compile it, and
// the core that is measured beside it is the one that they have.
#include "bare_loops.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <map>

#include "bindings/arrays.hpp"
#include "bindings/bound_rollout.hpp"
#include "bindings/describe.hpp"
#include "bindings/interpreter.hpp"
#include "bindings/numpy_arrays.hpp"
#include "envs/classic/acrobot.hpp"
#include "envs/classic/cart_pole.hpp"
#include "envs/classic/mountain_car.hpp"
#include "envs/classic/mountain_car_continuous.hpp"
#include "envs/classic/pendulum.hpp"
#include "envs/mujoco/ant.hpp"
#include "envs/mujoco/half_cheetah.hpp"
#include "envs/mujoco/hopper.hpp"
#include "envs/mujoco/humanoid.hpp"
#include "envs/mujoco/humanoid_standup.hpp"
#include "envs/mujoco/inverted_double_pendulum.hpp"
#include "envs/mujoco/inverted_pendulum.hpp"
#include "envs/mujoco/mujoco_task.hpp"
#include "envs/mujoco/pusher.hpp"
#include "envs/mujoco/reacher.hpp"
#include "envs/mujoco/swimmer.hpp"
#include "envs/mujoco/walker2d.hpp"
#include "envs/synthetic/busy.hpp"
#include "envs/toy/blackjack.hpp"
#include "envs/toy/cliff_walking.hpp"
#include "envs/toy/frozen_lake.hpp"
#include "envs/toy/taxi.hpp"
#include "machine.hpp"

namespace raceway::python {
namespace {

struct Loops {
  double (*plain)(const Arguments&, const BareRun&);
  double (*with_policy)(const Arguments&, const BareRun&, const Network&);
};

template <class... Envs>
std::map<const raceway_table*, Loops> loops_of() {
  return {{Adapter<Envs>::table(), {bare_loop<Envs>, bare_policy_loop<Envs>}}...};
}

// By table: several ids may stand for one environment.
const Loops& loops_of(const Task& task) {
  static const auto kLoops =
      loops_of<Acrobot, Ant, Blackjack, Busy, CartPole, CliffWalking, FrozenLake, HalfCheetah, Hopper, Humanoid,
               HumanoidStandup, InvertedDoublePendulum, InvertedPendulum, MountainCar, MountainCarContinuous,
               MujocoTask, Pendulum, Pusher, Reacher, Swimmer, Taxi<3>, Taxi<4>, Walker2d>();
  const auto found = kLoops.find(task.table);
  if (found == kLoops.end()) throw nb::value_error((std::string(task.id) + " has no bare loop.").c_str());
  return found->second;
}

double run_plain(const std::string& id, const nb::dict& kwargs, std::int64_t limit, std::size_t num_envs,
                 nb::handle actions, std::size_t num_steps, int num_threads, std::uint32_t seed) {
  const Task& task = find_task(id);
  const Values values(*task.table, kwargs);
  const Configuration configuration = configure(*task.table, values.get());
  const raceway_column& column = task.table->layout(configuration.get())->action;
  BareRun run{num_envs, num_steps, num_threads > 0 ? num_threads : usable_cpus(), limit, seed, nullptr};
  run.actions = memory_of(actions, column.dtype, num_steps, num_envs * elements_of(column), "actions");
  const Unlocked unlocked;
  return loops_of(task).plain(Arguments(values.get()), run);
}

double run_with_policy(const std::string& id, const nb::dict& kwargs, std::int64_t limit, std::size_t num_envs,
                       const BoundPolicy& policy, std::size_t num_steps, int num_threads, std::uint32_t seed) {
  const Task& task = find_task(id);
  const Values values(*task.table, kwargs);
  const std::shared_ptr<const Network> network = policy.native()->network();
  if (!network) throw nb::value_error("the policy has no weights yet. Call load() first.");
  BareRun run{num_envs, num_steps, num_threads > 0 ? num_threads : usable_cpus(), limit, seed, nullptr};
  const Unlocked unlocked;
  return loops_of(task).with_policy(Arguments(values.get()), run, *network);
}

}  // namespace
}  // namespace raceway::python

NB_MODULE(_bare_loops, module) {
  namespace nb = nanobind;
  namespace python = raceway::python;
  python::import_numpy();
  module.def("bare_loop", &python::run_plain, nb::arg("id"), nb::arg("kwargs"), nb::arg("limit"), nb::arg("num_envs"),
             nb::arg("actions"), nb::arg("num_steps"), nb::arg("num_threads"), nb::arg("seed"));
  module.def("bare_policy_loop", &python::run_with_policy, nb::arg("id"), nb::arg("kwargs"), nb::arg("limit"),
             nb::arg("num_envs"), nb::arg("policy"), nb::arg("num_steps"), nb::arg("num_threads"), nb::arg("seed"));
}
