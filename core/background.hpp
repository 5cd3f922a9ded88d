// Work in a thread of its own, for a caller that must not block: one that listens for signals while it waits.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "signal.hpp"

namespace raceway {

// A named thread that no signal is delivered to, except for faults: signals are for threads that the caller knows.
// Throws std::system_error if the system has no thread left.
std::thread start_thread(const std::string& name, std::function<void()> work);

// Started when it is made; if the system has no thread left, the constructor does the work. An object that is destroyed
// earlier does not end the work, so `work` must own what it uses, or its owner must stay.
class BackgroundTask {
 public:
  explicit BackgroundTask(std::function<void()> work);

  // Whether the work has ended by the deadline.
  bool ended_by(Clock::time_point deadline) const;
  // Calls `go_on` every now and then until the work has ended or `go_on` is false. Returns whether it has ended.
  bool wait(const std::function<bool()>& go_on) const;
  // Once it has ended: throws what it threw, if anything.
  void rethrow() const;

 private:
  struct State {
    Signal signal;
    std::atomic<bool> ended{false};
    std::exception_ptr failure;
  };
  std::shared_ptr<State> state_;
};

}  // namespace raceway
