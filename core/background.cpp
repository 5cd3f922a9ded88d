#include "background.hpp"

#include <pthread.h>

#include <csignal>

namespace raceway {
namespace {

constexpr std::chrono::microseconds kSpin{100};

}  // namespace

std::thread start_thread(const std::string& name, std::function<void()> work) {
  sigset_t all, before;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // a new thread inherits it
  try {
    std::thread thread(std::move(work));
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_setname_np(thread.native_handle(), name.c_str());
    return thread;
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
}

BackgroundTask::BackgroundTask(std::function<void()> work) : state_(std::make_shared<State>()) {
  const auto run = [state = state_, work = std::move(work)] {
    try {
      work();
    } catch (...) {
      state->failure = std::current_exception();
    }
    state->ended.store(true, std::memory_order_release);
    state->signal.raise();
  };
  try {
    start_thread("raceway-task", run).detach();
  } catch (const std::system_error&) {
    run();
  }
}

bool BackgroundTask::ended_by(Clock::time_point deadline) const {
  Patience patience(kSpin);
  while (true) {
    const std::uint32_t seen = state_->signal.now();
    if (state_->ended.load(std::memory_order_acquire)) return true;
    if (!state_->signal.wait(seen, patience, deadline)) return false;
  }
}

bool BackgroundTask::wait(const std::function<bool()>& go_on) const {
  while (!ended_by(Clock::now() + kPollEvery)) {
    if (!go_on()) return false;
  }
  return true;
}

void BackgroundTask::rethrow() const {
  if (state_->failure) std::rethrow_exception(state_->failure);
}

}  // namespace raceway
