#include "arrays.hpp"

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace raceway::python {
namespace {

int numpy_type(std::int32_t dtype) {
  switch (dtype) {
    case RACEWAY_BOOL:
      return NPY_BOOL;
    case RACEWAY_INT8:
      return NPY_INT8;
    case RACEWAY_UINT8:
      return NPY_UINT8;
    case RACEWAY_INT32:
      return NPY_INT32;
    case RACEWAY_INT64:
      return NPY_INT64;
    case RACEWAY_FLOAT32:
      return NPY_FLOAT32;
    default:
      return NPY_FLOAT64;
  }
}

nb::object checked(PyObject* made) {
  if (!made) throw nb::python_error();
  return nb::steal(made);
}

PyArrayObject* as_array(nb::handle object) {
  return reinterpret_cast<PyArrayObject*>(object.ptr());
}

// `strides` is null for an array without gaps: NumPy then need not look whether it has any.
nb::object make_view(const void* data, int type, int ndim, const npy_intp* shape, const npy_intp* strides,
                     nb::handle owner) {
  const int flags = strides ? NPY_ARRAY_WRITEABLE : NPY_ARRAY_CARRAY;
  nb::object array = checked(PyArray_NewFromDescr(&PyArray_Type, PyArray_DescrFromType(type), ndim, shape, strides,
                                                  const_cast<void*>(data), flags, nullptr));
  if (strides) PyArray_UpdateFlags(as_array(array), NPY_ARRAY_UPDATE_ALL);
  if (PyArray_SetBaseObject(as_array(array), nb::object(nb::borrow(owner)).release().ptr()) < 0) {
    throw nb::python_error();
  }
  return array;
}

std::string shape_text(const npy_intp* shape, int ndim) {
  std::string text = "(";
  for (int axis = 0; axis < ndim; ++axis)
    text += std::to_string(shape[axis]) + (ndim == 1 ? "," : axis + 1 < ndim ? ", " : "");
  return text + ")";
}

std::string text_of(nb::handle object) {
  return nb::steal<nb::str>(PyObject_Str(object.ptr())).c_str();
}

std::string dtype_text(PyArrayObject* array) {
  return text_of(reinterpret_cast<PyObject*>(PyArray_DESCR(array)));
}

// Unsigned 64-bit numbers that a cast to signed ones would turn negative.
void check_castable(const nb::object& array, const char* name, const std::string& range) {
  if (!PyArray_ISUNSIGNED(as_array(array)) || PyArray_ITEMSIZE(as_array(array)) < 8) return;
  if (PyArray_SIZE(as_array(array)) == 0) return;
  const nb::object most = array.attr("max")();
  if (nb::cast<std::uint64_t>(nb::int_(most)) <= std::uint64_t{INT64_MAX}) return;
  const std::string place = "[" + text_of(array.attr("argmax")()) + "] is ";
  throw nb::value_error((name + place + text_of(most) + ": " + range + ".").c_str());
}

// `actions` as a C-contiguous array of the task's own type; the object itself if it is one already.
nb::object canonical(nb::handle actions, const raceway_column& column, const std::string& task) {
  const int type = numpy_type(column.dtype);
  if (PyArray_CheckExact(actions.ptr()) && PyArray_TYPE(as_array(actions)) == type &&
      PyArray_ISCARRAY_RO(as_array(actions))) {
    return nb::borrow(actions);
  }
  nb::object array = checked(PyArray_FromAny(actions.ptr(), nullptr, 0, 0, 0, nullptr));
  const bool number = PyArray_ISINTEGER(as_array(array)) || PyArray_ISBOOL(as_array(array));
  const bool fits = column.space == RACEWAY_DISCRETE ? number : number || PyArray_ISFLOAT(as_array(array));
  if (!fits) {
    throw nb::type_error(
        ("actions have dtype " + dtype_text(as_array(array)) + ": " + task + " takes " +
         (column.space == RACEWAY_DISCRETE ? "whole numbers, such as int64." : "numbers, such as float32."))
            .c_str());
  }
  if (column.space == RACEWAY_DISCRETE) {
    check_castable(array, "actions", task + " takes 0 to " + std::to_string(column.discrete_n - 1));
  }
  return checked(PyArray_FromAny(array.ptr(), PyArray_DescrFromType(type), 0, 0,
                                 NPY_ARRAY_CARRAY_RO | NPY_ARRAY_FORCECAST, nullptr));
}

void check_shape(PyArrayObject* array, const raceway_column& column, std::size_t rows) {
  npy_intp expected[5] = {static_cast<npy_intp>(rows)};
  std::copy_n(column.shape, column.ndim, expected + 1);
  const int ndim = column.ndim + 1;
  if (PyArray_NDIM(array) == ndim && std::equal(expected, expected + ndim, PyArray_DIMS(array))) return;
  throw nb::value_error(("actions have shape " + shape_text(PyArray_DIMS(array), PyArray_NDIM(array)) + ": expected " +
                         shape_text(expected, ndim) + ", one action for each of " + std::to_string(rows) +
                         " environments.")
                            .c_str());
}

// Whether any value is outside 0 to n - 1: then it or n - 1 minus it has the sign's bit.
bool any_outside(const std::int64_t* values, std::size_t count, std::int64_t n) {
  std::uint64_t signs = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = static_cast<std::uint64_t>(values[i]);
    signs |= value | (static_cast<std::uint64_t>(n) - 1 - value);
  }
  return signs >> 63 != 0;
}

bool any_nan(const float* values, std::size_t count) {
  bool found = false;
  for (std::size_t i = 0; i < count; ++i) found |= values[i] != values[i];
  return found;
}

// Looks closer at actions of which one seems wrong. An environment that is about to be reset ignores its action.
void refuse(const void* actions, const Pool& pool, const std::string& task, std::span<const std::size_t> envs,
            std::size_t rows) {
  const raceway_column& column = pool.layout().action;
  const std::size_t size = elements_of(column);
  for (std::size_t row = 0; row < rows; ++row) {
    if (pool.ignores_action(envs.empty() ? row : envs[row])) continue;
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t at = row * size + i;
      const std::string place =
          "actions[" + std::to_string(row) + (column.ndim > 0 ? ", " + std::to_string(i) : "") + "] is ";
      if (column.space == RACEWAY_DISCRETE) {
        const std::int64_t value = static_cast<const std::int64_t*>(actions)[at];
        if (value >= 0 && value < column.discrete_n) continue;
        throw nb::value_error((place + std::to_string(value) + ": " + task + " takes 0 to " +
                               std::to_string(column.discrete_n - 1) + ". No environment was stepped.")
                                  .c_str());
      }
      if (std::isnan(static_cast<const float*>(actions)[at])) {
        throw nb::value_error(
            (place + "nan: " + task + " takes numbers. Look for what made it; no environment was stepped.").c_str());
      }
    }
  }
}

}  // namespace

void import_numpy() {
  if (PyArray_ImportNumPyAPI() < 0) throw nb::python_error();
}

nb::object Lease::into_owner() {
  nb::object owner = checked(PyCapsule_New(block_, nullptr, [](PyObject* capsule) {
    Slab::give_back(static_cast<Block*>(PyCapsule_GetPointer(capsule, nullptr)));
  }));
  block_ = nullptr;
  return owner;
}

nb::object array_over(const void* data, const raceway_column& column, std::size_t rows, std::size_t stride,
                      nb::handle owner) {
  npy_intp shape[5] = {static_cast<npy_intp>(rows)}, strides[5] = {static_cast<npy_intp>(stride)};
  std::copy_n(column.shape, column.ndim, shape + 1);
  auto step = static_cast<npy_intp>(size_of(column.dtype));
  for (std::int32_t axis = column.ndim; axis > 0; --axis) {
    strides[axis] = step;
    step *= shape[axis];
  }
  return make_view(data, numpy_type(column.dtype), column.ndim + 1, shape, stride > 0 ? strides : nullptr, owner);
}

nb::object array_over(const double* data, std::size_t rows, nb::handle owner) {
  const auto shape = static_cast<npy_intp>(rows);
  return make_view(data, NPY_FLOAT64, 1, &shape, nullptr, owner);
}

nb::object array_over(const std::int64_t* data, std::size_t rows, nb::handle owner) {
  const auto shape = static_cast<npy_intp>(rows);
  return make_view(data, NPY_INT64, 1, &shape, nullptr, owner);
}

nb::object flags_over(const std::uint8_t* data, std::size_t rows, nb::handle owner) {
  const auto shape = static_cast<npy_intp>(rows);
  return make_view(data, NPY_BOOL, 1, &shape, nullptr, owner);
}

nb::object bytes_over(const void* data, std::size_t size, nb::handle owner, bool writable) {
  const auto shape = static_cast<npy_intp>(size);
  nb::object array = make_view(data, NPY_UINT8, 1, &shape, nullptr, owner);
  if (!writable) PyArray_CLEARFLAGS(as_array(array), NPY_ARRAY_WRITEABLE);
  return array;
}

nb::object observations(const void* data, const raceway_layout& layout, std::size_t rows, nb::handle owner) {
  if (layout.container == RACEWAY_SINGLE) return array_over(data, layout.obs[0], rows, 0, owner);
  std::size_t row_size = 0;
  for (std::size_t i = 0; i < layout.num_obs; ++i) row_size += bytes_of(layout.obs[i]);
  nb::list leaves;
  nb::dict named;
  const char* position = static_cast<const char*>(data);
  for (std::size_t i = 0; i < layout.num_obs; ++i) {
    nb::object leaf = array_over(position, layout.obs[i], rows, row_size, owner);
    if (layout.container == RACEWAY_DICT) {
      named[layout.obs[i].name] = leaf;
    } else {
      leaves.append(leaf);
    }
    position += bytes_of(layout.obs[i]);
  }
  if (layout.container == RACEWAY_DICT) return named;
  return nb::tuple(leaves);
}

void read_actions(nb::handle actions, Pool& pool, const std::string& task, std::span<const std::size_t> envs,
                  std::vector<char>& aside) {
  const raceway_column& column = pool.layout().action;
  const std::size_t rows = envs.empty() ? pool.settings().num_envs : envs.size();
  const nb::object array = canonical(actions, column, task);
  check_shape(as_array(array), column, rows);
  const void* data = PyArray_DATA(as_array(array));
  const std::size_t count = rows * elements_of(column), row_size = bytes_of(column);
  // Copied first and then checked: another thread may write to the caller's array meanwhile.
  auto* target = static_cast<char*>(pool.actions());
  aside.resize(envs.size() * row_size);
  data = std::memcpy(envs.empty() ? target : aside.data(), data, rows * row_size);
  const bool wrong = column.space == RACEWAY_DISCRETE
                         ? any_outside(static_cast<const std::int64_t*>(data), count, column.discrete_n)
                         : any_nan(static_cast<const float*>(data), count);
  if (wrong) refuse(data, pool, task, envs, rows);
  for (std::size_t row = 0; row < envs.size(); ++row) {
    std::memcpy(target + envs[row] * row_size, static_cast<const char*>(data) + row * row_size, row_size);
  }
}

void read_env_ids(nb::handle ids, std::size_t num_envs, std::vector<std::size_t>& envs) {
  const nb::object given = checked(PyArray_FromAny(ids.ptr(), nullptr, 0, 0, 0, nullptr));
  if (PyArray_NDIM(as_array(given)) == 1 && PyArray_SIZE(as_array(given)) == 0) {
    throw nb::value_error("env_ids is empty: there is nothing to send.");
  }
  if (!PyArray_ISINTEGER(as_array(given)) || PyArray_NDIM(as_array(given)) != 1) {
    throw nb::type_error("env_ids must be a list or one-dimensional array of whole numbers, such as infos['env_id'].");
  }
  check_castable(given, "env_ids", "the pool has environments 0 to " + std::to_string(num_envs - 1));
  const nb::object array = checked(PyArray_FromAny(given.ptr(), PyArray_DescrFromType(NPY_INT64), 0, 0,
                                                   NPY_ARRAY_CARRAY_RO | NPY_ARRAY_FORCECAST, nullptr));
  const auto* values = static_cast<const std::int64_t*>(PyArray_DATA(as_array(array)));
  envs.clear();
  for (npy_intp i = 0; i < PyArray_DIM(as_array(array), 0); ++i) {
    if (values[i] < 0 || values[i] >= static_cast<std::int64_t>(num_envs)) {
      throw nb::value_error(("env_ids[" + std::to_string(i) + "] is " + std::to_string(values[i]) +
                             ": the pool has environments 0 to " + std::to_string(num_envs - 1) + ".")
                                .c_str());
    }
    envs.push_back(static_cast<std::size_t>(values[i]));
  }
}

nb::object new_array(std::int32_t dtype, std::size_t rows, std::size_t columns, void** data) {
  const npy_intp shape[2] = {static_cast<npy_intp>(rows), static_cast<npy_intp>(columns)};
  nb::object array = checked(PyArray_SimpleNew(columns == 0 ? 1 : 2, shape, numpy_type(dtype)));
  *data = PyArray_DATA(as_array(array));
  return array;
}

const void* memory_of(nb::handle array, std::int32_t dtype, std::size_t rows, std::size_t columns, const char* name) {
  const npy_intp shape[2] = {static_cast<npy_intp>(rows), static_cast<npy_intp>(columns)};
  const int ndim = columns == 0 ? 1 : 2;
  if (!PyArray_Check(array.ptr()) || PyArray_TYPE(as_array(array)) != numpy_type(dtype) ||
      !PyArray_ISCARRAY_RO(as_array(array)) || PyArray_NDIM(as_array(array)) != ndim ||
      !std::equal(shape, shape + ndim, PyArray_DIMS(as_array(array)))) {
    throw nb::value_error(
        (std::string(name) + " must be a contiguous array of shape " + shape_text(shape, ndim) + ".").c_str());
  }
  return PyArray_DATA(as_array(array));
}

void* memory_of(nb::handle array, std::int32_t dtype, const std::vector<std::size_t>& shape, const std::string& name,
                bool writable) {
  const std::vector<npy_intp> wanted(shape.begin(), shape.end());
  const int ndim = static_cast<int>(shape.size());
  const auto expected = [&] {  // made only when it is said: a dtype's text takes longer than all the checks
    return "expected a C-contiguous " + std::string(writable ? "writable " : "") + "array of " +
           text_of(nb::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromType(numpy_type(dtype))))) + " and shape " +
           shape_text(wanted.data(), ndim) + ".";
  };
  if (!PyArray_Check(array.ptr())) {
    throw nb::type_error((name + " is of type " + text_of(array.type().attr("__name__")) + ": " + expected()).c_str());
  }
  PyArrayObject* given = as_array(array);
  if (PyArray_TYPE(given) != numpy_type(dtype) || PyArray_NDIM(given) != ndim ||
      !std::equal(wanted.begin(), wanted.end(), PyArray_DIMS(given)) || !PyArray_ISCARRAY_RO(given)) {
    const char* gaps = PyArray_ISCARRAY_RO(given) ? "" : ", not C-contiguous";
    throw nb::value_error((name + " is an array of " + dtype_text(given) + " and shape " +
                           shape_text(PyArray_DIMS(given), PyArray_NDIM(given)) + gaps + ": " + expected())
                              .c_str());
  }
  if (writable && !PyArray_ISWRITEABLE(given)) throw nb::value_error((name + " is read-only: " + expected()).c_str());
  return PyArray_DATA(given);
}

}  // namespace raceway::python
