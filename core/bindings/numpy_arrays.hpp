// NumPy's C interface for the files that look into arrays. Each of them calls `PyArray_ImportNumPyAPI` before it does.
#pragma once

#include <nanobind/nanobind.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>

#include <stdexcept>
#include <string>

namespace raceway::python {

namespace nb = nanobind;

inline PyArrayObject* as_array(PyObject* object) {
  return reinterpret_cast<PyArrayObject*>(object);
}

// The memory of a C-contiguous, writable array of one type, with at least so many numbers.
template <class Number>
Number* numbers(const nb::object& object, int type, const char* name, std::size_t least) {
  if (!PyArray_CheckExact(object.ptr())) throw std::invalid_argument(std::string(name) + " is no array.");
  PyArrayObject* array = as_array(object.ptr());
  if (PyArray_TYPE(array) != type || !PyArray_ISCARRAY(array) ||
      static_cast<std::size_t>(PyArray_SIZE(array)) < least) {
    throw std::invalid_argument(std::string(name) + " is not an array of the right type and size.");
  }
  return static_cast<Number*>(PyArray_DATA(array));
}

}  // namespace raceway::python
