// Environments written in Python, stepped one after the other. What comes of a step is as usual nearly always, and is
// then written to its row here; whatever is not (an episode that begins, an observation of another type) is handed
// back.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>

namespace raceway::python {

namespace nb = nanobind;

class PythonSteps {
 public:
  // Arrays with a row for each environment; `observations` is None where they are not one array. `beats` is told which
  // environment is being called: its number there, counted from `first`. `after_end`: whether an environment whose
  // episode has ended is marked as special, and so not simply stepped next; nothing: it is handed back.
  PythonSteps(nb::object observations, nb::object rewards, nb::object terminated, nb::object truncated,
              nb::object lengths, nb::object beats, std::int64_t first, std::optional<bool> after_end);

  // Steps the environments in `which` from place `begin` on, those that `special` marks excepted. Returns None when it
  // is through, or the place of one that is to be dealt with, and what it gave (None: it is marked, and was not
  // stepped).
  nb::object run(nb::list steps, nb::list which, nb::list actions, std::size_t begin, nb::bytearray special,
                 nb::list notes);

  // Where it is: if a step raised, that one.
  std::size_t place() const { return place_; }

 private:
  bool write(std::size_t index, PyObject* result, PyObject* notes, bool& ends);
  bool fits(PyObject* observation) const;

  nb::object kept_[6];
  PyObject* observations_ = nullptr;
  double* rewards_;
  std::uint8_t *terminated_, *truncated_;
  std::int64_t* lengths_;
  std::int64_t* beats_ = nullptr;
  std::int64_t first_;
  std::optional<bool> after_end_;
  std::size_t rows_, place_ = 0;
};

void bind_python_steps(nb::module_& module);

}  // namespace raceway::python
