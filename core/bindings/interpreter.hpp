// Leaving the interpreter while native code works, and coming back to one that may be ending.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>

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

// Remembers which thread is Python's main one. Called once, when the module is imported: later, and lazily, two threads
// could wait for each other, one for the interpreter's lock and one for the end of the initialisation.
void find_main_thread();
bool in_main_thread();

// For work that may take long: whether to go on, false with Python's error set after Ctrl-C. Empty in other threads
// than the main one, which never hear it. To be called without the interpreter's lock.
std::function<bool()> signals_of_main_thread();

// Runs a user's own code, which may never return: in the main thread by a thread of its own, so that Ctrl-C is heard.
// Throws what `work` throws. After Ctrl-C `work` may still be running: it must own what it uses.
void run_interruptibly(std::function<void()> work);

}  // namespace raceway::python
