#include "interpreter.hpp"

#include <atomic>
#include <chrono>
#include <thread>

namespace raceway::python {
namespace {

std::atomic<bool> exiting{false};
std::atomic<int> returning{0};  // threads between looking at `exiting` and holding the lock
std::thread::id exiting_thread;

[[noreturn]] void sleep_for_ever() {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

}  // namespace

Unlocked::~Unlocked() {
  returning.fetch_add(1);
  if (exiting.load() && std::this_thread::get_id() != exiting_thread) {
    returning.fetch_sub(1);
    sleep_for_ever();
  }
  PyEval_RestoreThread(state_);
  returning.fetch_sub(1);
}

void prepare_exit() {
  exiting_thread = std::this_thread::get_id();
  exiting.store(true);
  PyThreadState* state = PyEval_SaveThread();
  while (returning.load() > 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
  PyEval_RestoreThread(state);
}

}  // namespace raceway::python
