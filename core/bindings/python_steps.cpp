#include "python_steps.hpp"

#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cstring>

#include "numpy_arrays.hpp"

namespace raceway::python {
namespace {

// 0 or 1; -1 if it is no truth value of Python's or NumPy's.
int truth(PyObject* object) {
  if (object == Py_False || object == PyArrayScalar_False) return 0;
  if (object == Py_True || object == PyArrayScalar_True) return 1;
  return -1;
}

}  // namespace

PythonSteps::PythonSteps(nb::object observations, nb::object rewards, nb::object terminated, nb::object truncated,
                         nb::object lengths, nb::object beats, std::int64_t first, std::optional<bool> after_end)
    : kept_{observations, rewards, terminated, truncated, lengths, beats}, first_(first), after_end_(after_end) {
  if (!PyArray_CheckExact(rewards.ptr())) throw std::invalid_argument("rewards is no array.");
  rows_ = static_cast<std::size_t>(PyArray_SIZE(as_array(rewards.ptr())));
  rewards_ = numbers<double>(rewards, NPY_FLOAT64, "rewards", rows_);
  terminated_ = numbers<std::uint8_t>(terminated, NPY_BOOL, "terminated", rows_);
  truncated_ = numbers<std::uint8_t>(truncated, NPY_BOOL, "truncated", rows_);
  lengths_ = numbers<std::int64_t>(lengths, NPY_INT64, "lengths", rows_);
  if (!beats.is_none()) beats_ = numbers<std::int64_t>(beats, NPY_INT64, "beats", 2);
  if (observations.is_none()) return;
  PyArrayObject* array = as_array(observations.ptr());
  if (!PyArray_CheckExact(observations.ptr()) || !PyArray_ISCARRAY(array) || PyArray_NDIM(array) < 1 ||
      static_cast<std::size_t>(PyArray_DIM(array, 0)) < rows_ || PyDataType_REFCHK(PyArray_DESCR(array))) {
    throw std::invalid_argument("observations is not an array with a row for each environment.");
  }
  observations_ = observations.ptr();
}

nb::object PythonSteps::run(nb::list steps, nb::list which, nb::list actions, std::size_t begin, nb::bytearray special,
                            nb::list notes) {
  const std::size_t count = std::min(which.size(), actions.size());
  for (place_ = begin; place_ < count; ++place_) {
    const Py_ssize_t index = PyLong_AsSsize_t(PyList_GET_ITEM(which.ptr(), static_cast<Py_ssize_t>(place_)));
    // Python code runs in between, and could have changed any of them.
    if (index < 0 || static_cast<std::size_t>(index) >= rows_ || index >= PyByteArray_GET_SIZE(special.ptr()) ||
        static_cast<std::size_t>(index) >= steps.size() || place_ >= actions.size() || place_ >= which.size()) {
      throw std::out_of_range("no environment " + std::to_string(index) + " here.");
    }
    const auto place = static_cast<Py_ssize_t>(place_);
    if (PyByteArray_AS_STRING(special.ptr())[index] != 0) return nb::make_tuple(place_, nb::none());
    if (beats_) {
      beats_[0] += 1;
      beats_[1] = first_ + index;
    }
    const nb::object step = nb::borrow(PyList_GET_ITEM(steps.ptr(), index));
    const nb::object action = nb::borrow(PyList_GET_ITEM(actions.ptr(), place));
    PyObject* result = PyObject_CallOneArg(step.ptr(), action.ptr());
    if (!result) throw nb::python_error();
    const nb::object held = nb::steal(result);
    bool ends = false;
    if (!write(static_cast<std::size_t>(index), result, notes.ptr(), ends)) return nb::make_tuple(place_, held);
    if (ends) PyByteArray_AS_STRING(special.ptr())[index] = static_cast<char>(*after_end_);
  }
  return nb::none();
}

// False, with nothing written, if this is not what a step usually gives.
bool PythonSteps::write(std::size_t index, PyObject* result, PyObject* notes, bool& ends) {
  if (!PyTuple_CheckExact(result) || PyTuple_GET_SIZE(result) != 5) return false;
  PyObject* observation = PyTuple_GET_ITEM(result, 0);
  PyObject* reward = PyTuple_GET_ITEM(result, 1);
  PyObject* info = PyTuple_GET_ITEM(result, 4);
  const int terminated = truth(PyTuple_GET_ITEM(result, 2)), truncated = truth(PyTuple_GET_ITEM(result, 3));
  if (terminated < 0 || truncated < 0) return false;
  ends = terminated != 0 || truncated != 0;
  if (ends && !after_end_) return false;
  if (!PyDict_CheckExact(info) || !PyFloat_Check(reward) || !fits(observation)) return false;  // NumPy's is a float too
  if (PyDict_GET_SIZE(info) > 0) {
    const nb::object copy = nb::steal(PyDict_Copy(info));
    if (!copy) throw nb::python_error();
    const nb::object note = nb::make_tuple(index, copy);
    if (PyList_Append(notes, note.ptr()) != 0) throw nb::python_error();
  }
  const auto size = static_cast<std::size_t>(PyArray_NBYTES(as_array(observation)));  // an empty row has a stride too
  if (size > 0) {
    std::memcpy(PyArray_BYTES(as_array(observations_)) + index * size, PyArray_DATA(as_array(observation)), size);
  }
  rewards_[index] = PyFloat_AS_DOUBLE(reward);
  terminated_[index] = static_cast<std::uint8_t>(terminated);
  truncated_[index] = static_cast<std::uint8_t>(truncated);
  lengths_[index] += 1;
  return true;
}

bool PythonSteps::fits(PyObject* observation) const {
  if (!observations_ || !PyArray_CheckExact(observation)) return false;
  PyArrayObject *array = as_array(observation), *rows = as_array(observations_);
  if (PyArray_DESCR(array) != PyArray_DESCR(rows) || PyArray_NDIM(array) != PyArray_NDIM(rows) - 1) return false;
  const npy_intp* dims = PyArray_DIMS(array);
  return std::equal(dims, dims + PyArray_NDIM(array), PyArray_DIMS(rows) + 1) && PyArray_IS_C_CONTIGUOUS(array);
}

void bind_python_steps(nb::module_& module) {
  if (PyArray_ImportNumPyAPI() < 0) throw nb::python_error();
  nb::class_<PythonSteps>(module, "PythonSteps")
      .def(nb::init<nb::object, nb::object, nb::object, nb::object, nb::object, nb::object, std::int64_t,
                    std::optional<bool>>(),
           nb::arg("observations").none(), nb::arg("rewards"), nb::arg("terminated"), nb::arg("truncated"),
           nb::arg("lengths"), nb::arg("beats").none(), nb::arg("first"), nb::arg("after_end").none())
      .def("run", &PythonSteps::run, nb::arg("steps"), nb::arg("which"), nb::arg("actions"), nb::arg("begin"),
           nb::arg("special"), nb::arg("notes"))
      .def_prop_ro("place", &PythonSteps::place);
}

}  // namespace raceway::python
