#include "interpreter.hpp"

#include <pthread.h>

#include <chrono>
#include <optional>
#include <thread>

#include "../background.hpp"

namespace raceway::python {

namespace nb = nanobind;

namespace {

// Python ends a daemon thread that wants the lock of an ending interpreter by unwinding its stack, and above us are
// frames that abort the process when that reaches them. So the unwinding stops here, until the process is gone.
class Anchor {
 public:
  ~Anchor() {
    while (!released_) std::this_thread::sleep_for(std::chrono::hours(1));
  }
  void release() { released_ = true; }

 private:
  bool released_ = false;
};

unsigned long main_thread = 0;

[[gnu::noinline]] void take_lock(PyThreadState* state) {
  Anchor anchor;
  PyEval_RestoreThread(state);
  anchor.release();
}

}  // namespace

Unlocked::~Unlocked() {
  take_lock(state_);
}

bool interpreter_is_ending() {
#if PY_VERSION_HEX >= 0x030d0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

void find_main_thread() {
  main_thread = nb::cast<unsigned long>(nb::module_::import_("threading").attr("main_thread")().attr("ident"));
  pthread_atfork(nullptr, nullptr, [] { main_thread = PyThread_get_thread_ident(); });
}

bool in_main_thread() {
  return PyThread_get_thread_ident() == main_thread;
}

std::function<bool()> signals_of_main_thread() {
  if (!in_main_thread()) return nullptr;
  return [] {
    const nb::gil_scoped_acquire lock;
    // With an error set no handler may run: its caller is already on the way out.
    return PyErr_Occurred() == nullptr && PyErr_CheckSignals() == 0;
  };
}

void run_interruptibly(std::function<void()> work) {
  const std::function<bool()> poll = signals_of_main_thread();
  std::optional<BackgroundTask> task;
  bool ended = true;
  {
    const Unlocked unlocked;
    if (poll) {
      ended = task.emplace(std::move(work)).wait(poll);
    } else {
      work();
    }
  }
  if (!ended) throw nb::python_error();
  if (task) task->rethrow();
}

}  // namespace raceway::python
