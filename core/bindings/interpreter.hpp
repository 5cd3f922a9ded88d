// Leaving the interpreter while native code works, and what becomes of threads that come back when it is ending.
#pragma once

#include <nanobind/nanobind.h>

namespace raceway::python {

// The interpreter's lock is free while one of these lives.
//
// A daemon thread that wants it back while the interpreter ends would be ended by Python from within, through C++
// frames that cannot bear it. After prepare_exit() such a thread sleeps instead, until the process is gone.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

// Called once, by the thread that ends the interpreter, while it still holds the lock.
void prepare_exit();

}  // namespace raceway::python
