// Leaving the interpreter while native code works, and coming back to one that may be ending.
#pragma once

#include <nanobind/nanobind.h>

namespace raceway::python {

// The interpreter's lock is free while one of these lives.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

bool interpreter_is_ending();

}  // namespace raceway::python
