#include "interpreter.hpp"

#include <chrono>
#include <thread>

namespace raceway::python {
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

}  // namespace raceway::python
