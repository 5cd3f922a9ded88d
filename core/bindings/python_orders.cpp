#include "python_orders.hpp"

#include <cstring>

#include "interpreter.hpp"
#include "numpy_arrays.hpp"

namespace raceway::python {

Orders::Orders(BoundExchange& exchange, std::uint64_t tally, nb::object actions, nb::object places, nb::object done,
               std::int64_t wanted)
    : kept_{nb::find(exchange), actions, places, done},
      exchange_(exchange.exchange()),
      tally_(tally_at(exchange_, exchange_.host(), tally)),
      wanted_(wanted),
      places_(numbers<std::int64_t>(places, NPY_INT64, "places", 2)) {
  PyArrayObject* array = as_array(done.ptr());
  if (!PyArray_CheckExact(done.ptr()) || PyArray_TYPE(array) != NPY_INT64 || PyArray_NDIM(array) != 1) {
    throw std::invalid_argument("done is not an array with a number for each worker.");
  }
  done_ = static_cast<const std::byte*>(PyArray_DATA(array));
  stride_ = PyArray_STRIDE(array, 0);
  workers_ = static_cast<std::size_t>(PyArray_DIM(array, 0));
  if (actions.is_none()) return;
  if (!PyArray_CheckExact(actions.ptr()) || !PyArray_ISCARRAY(as_array(actions.ptr())) ||
      PyDataType_REFCHK(PyArray_DESCR(as_array(actions.ptr())))) {
    throw std::invalid_argument("actions is not an array of numbers.");
  }
  actions_ = actions.ptr();
}

bool Orders::takes(nb::handle actions) const {
  if (!actions_ || !PyArray_CheckExact(actions.ptr())) return false;
  PyArrayObject *given = as_array(actions.ptr()), *ours = as_array(actions_);
  return PyArray_DESCR(given) == PyArray_DESCR(ours) && PyArray_SAMESHAPE(given, ours) &&
         PyArray_IS_C_CONTIGUOUS(given);
}

nb::object Orders::step(nb::handle actions, std::int64_t number, std::int64_t place, std::int64_t before,
                        Patience& patience, double timeout_s) {
  if (!actions.is_none()) {
    if (!takes(actions)) throw std::invalid_argument("actions are not as the board has them.");
    const auto size = static_cast<std::size_t>(PyArray_NBYTES(as_array(actions_)));
    if (size > 0) std::memcpy(PyArray_DATA(as_array(actions_)), PyArray_DATA(as_array(actions.ptr())), size);
  }
  places_[0] = place;
  places_[1] = before;
  tally_.clear();
  tally_.want(wanted_);
  tally_.issue(number);
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout_s));
  if (!wait(patience, deadline) || !all_did(number)) return nb::none();
  return nb::bool_(exchange_.has_mail());
}

bool Orders::wait(Patience& patience, Clock::time_point deadline) {
  const Unlocked unlocked;
  for (std::size_t host = 0; host < exchange_.hosts(); ++host) {
    if (host != exchange_.host()) exchange_.ring(host);
  }
  while (true) {
    const std::uint32_t seen = exchange_.bell().now();
    if (tally_.done() >= wanted_) return true;
    if (!exchange_.bell().wait(seen, patience, deadline)) return false;
  }
}

// The tally may count what a worker did before it was killed, and its successor again.
bool Orders::all_did(std::int64_t number) const {
  for (std::size_t worker = 0; worker < workers_; ++worker) {
    std::int64_t done = 0;
    std::memcpy(&done, done_ + static_cast<std::ptrdiff_t>(worker) * stride_, sizeof done);
    if (done != number) return false;
  }
  return true;
}

void bind_python_orders(nb::module_& module) {
  if (PyArray_ImportNumPyAPI() < 0) throw nb::python_error();
  nb::class_<Orders>(module, "Orders")
      .def(nb::init<BoundExchange&, std::uint64_t, nb::object, nb::object, nb::object, std::int64_t>(),
           nb::arg("exchange"), nb::arg("tally"), nb::arg("actions").none(), nb::arg("places"), nb::arg("done"),
           nb::arg("wanted"))
      .def("takes", &Orders::takes, nb::arg("actions").none())
      .def("step", &Orders::step, nb::arg("actions").none(), nb::arg("number"), nb::arg("place"), nb::arg("before"),
           nb::arg("patience"), nb::arg("timeout_s"));
}

}  // namespace raceway::python
