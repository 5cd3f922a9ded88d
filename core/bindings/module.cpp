#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "../machine.hpp"
#include "bound_exchange.hpp"
#include "bound_pool.hpp"
#include "bound_rollout.hpp"
#include "describe.hpp"
#include "interpreter.hpp"
#include "python_orders.hpp"
#include "python_steps.hpp"

namespace nb = nanobind;
using namespace raceway;
using python::BoundPool;
using python::Configurations;

namespace {

// Gymnasium's own exceptions where it has them.
void translate(const std::exception_ptr& pointer, void*) {
  const auto raise = [](const char* name, const char* text, const char* module = "gymnasium.error") {
    PyErr_SetString(nb::module_::import_(module).attr(name).ptr(), text);
  };
  try {
    std::rethrow_exception(pointer);
  } catch (const ResetNeeded& error) {
    raise("ResetNeeded", error.what());
  } catch (const ClosedError& error) {
    raise("ClosedEnvironmentError", error.what());
  } catch (const BoundsError& error) {
    raise("OutOfBoundsError", error.what(), "raceway.errors");
  } catch (const PolicyError& error) {
    PyErr_SetString(PyExc_FloatingPointError, error.what());
  } catch (const StateError& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

}  // namespace

NB_MODULE(_core, module) {
  python::import_numpy();
  python::find_main_thread();
  // A pool that a daemon thread is inside of outlives the interpreter; the process is ending anyway.
  nb::set_leak_warnings(false);
  nb::register_exception_translator(translate);

  nb::class_<Configurations>(module, "Configurations")
      .def(nb::init<const std::string&, const std::vector<nb::dict>&>(), nb::arg("id"), nb::arg("kwargs"))
      .def("__len__", &Configurations::size)
      .def("layout", &Configurations::layout, nb::arg("index"))
      .def_prop_ro("has_pictures", &Configurations::has_pictures);

  nb::class_<BoundPool>(module, "Pool")
      .def(nb::init<const Configurations&, const std::vector<std::size_t>&, const std::vector<std::int32_t>&,
                    const nb::dict&>(),
           nb::arg("configurations"), nb::arg("which"), nb::arg("limits"), nb::arg("settings"))
      .def("seed", &BoundPool::seed, nb::arg("seeds"))
      .def("reset", &BoundPool::reset, nb::arg("mask").none(), nb::arg("options").none(), nb::arg("seeds"))
      .def("step", &BoundPool::step, nb::arg("actions").none())
      .def("observe", &BoundPool::observe)
      .def("async_reset", &BoundPool::async_reset)
      .def("send", &BoundPool::send, nb::arg("actions").none(), nb::arg("env_ids").none())
      .def("recv", &BoundPool::recv, nb::arg("timeout_s").none())
      .def("save", &BoundPool::save)
      .def("load", &BoundPool::load, nb::arg("rows"), nb::arg("random"), nb::arg("counts"), nb::arg("sums"))
      .def("faults", &BoundPool::faults)
      .def("pictures", &BoundPool::pictures)
      .def("close", &BoundPool::close)
      .def_prop_ro("workers", &BoundPool::workers)
      .def_prop_ro("threads", &BoundPool::threads)
      .def_prop_ro("in_flight", &BoundPool::in_flight);

  python::bind_exchange(module);
  python::bind_python_orders(module);
  python::bind_python_steps(module);
  python::bind_rollout(module);

  module.def("describe_tasks", &python::describe_tasks);
  module.def("describe_library", &python::describe_library, nb::arg("path"), nb::arg("source"));
  module.def("add_library", &python::add_library, nb::arg("path"), nb::arg("source"));
  module.def("table_loop", &python::run_table_loop, nb::arg("id"), nb::arg("kwargs"), nb::arg("limit"),
             nb::arg("num_envs"), nb::arg("actions"), nb::arg("num_steps"), nb::arg("num_threads"), nb::arg("seed"));
  module.def("guard_pools", [](bool guard) { guards_pools().store(guard); }, nb::arg("guard"));
  module.def("user_code", [] {
    const UserCodeCount all = count_user_code();
    return nb::make_tuple(all.inside, all.entered);
  });
  module.def("usable_cpus", &usable_cpus);
  module.def("die_with_parent", &die_with_parent, nb::arg("parent_pid"));
}
