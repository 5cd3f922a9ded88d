#include "ctrl_c.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <iterator>
#include <system_error>

#include "background.hpp"
#include "machine.hpp"
#include "user_code.hpp"

namespace raceway {
namespace {

constexpr std::chrono::seconds kUntilTermination{2};

struct Heard {
  const int number;
  const char* const name;
  struct sigaction before{};  // what was there when ours was put in its place
};
Heard signals[] = {{SIGINT, "Ctrl-C"}, {SIGTERM, "SIGTERM"}};

// The header that the watched thread does not come back from; null while all is well.
std::atomic<const char*> stuck_in{nullptr};
std::atomic<int> interrupts{0};       // since then
std::atomic<bool> terminated{false};  // since then

void end_process(int number) {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  sigaction(number, &action, nullptr);
  raise(number);  // from its handler: as soon as that returns
}

void tell(const char* name, const char* source, const char* what) {
  put("\nraceway: ");
  put(name);
  put(": an environment of ");
  put(source);
  put(" has not returned from its code. ");
  put(what);
  put("\n");
}

void on_signal(int number, siginfo_t* info, void* context) {
  const int saved = errno;
  const Heard& heard = signals[number == SIGINT ? 0 : 1];
  if (const char* source = stuck_in.load()) {
    if (number == SIGTERM && !terminated.exchange(true)) {
      tell(heard.name, source, "The process ends in two seconds if it still has not.");
    } else if (number == SIGINT && interrupts.fetch_add(1) == 0) {
      tell(heard.name, source, "Press Ctrl-C again to end the process.");
    } else if (number == SIGINT) {
      end_process(number);
    }
  }
  if (heard.before.sa_flags & SA_SIGINFO) {
    heard.before.sa_sigaction(number, info, context);
  } else {
    heard.before.sa_handler(number);
  }
  errno = saved;
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) && action.sa_sigaction == on_signal;
}

// Only over handlers: a signal that ends the process, or that is ignored, needs no help.
void listen(const char* source) {
  interrupts.store(0);
  terminated.store(false);
  stuck_in.store(source);
  for (Heard& heard : signals) {
    struct sigaction there{};
    sigaction(heard.number, nullptr, &there);
    if (there.sa_handler == SIG_DFL || there.sa_handler == SIG_IGN || is_ours(there)) continue;
    heard.before = there;
    struct sigaction action = there;
    action.sa_flags |= SA_SIGINFO;
    action.sa_sigaction = on_signal;
    sigaction(heard.number, &action, nullptr);
  }
}

void stop_listening() {
  stuck_in.store(nullptr);
  for (const Heard& heard : signals) {
    struct sigaction there{};
    sigaction(heard.number, nullptr, &there);
    if (is_ours(there)) sigaction(heard.number, &heard.before, nullptr);
  }
}

[[noreturn]] void watch(pid_t thread) {
  UserCodeCall before;
  Clock::time_point termination = Clock::time_point::max();
  while (true) {
    std::this_thread::sleep_for(kPollEvery);
    const UserCodeCall now = user_code_of(thread);
    const bool stays = now.source && now.number == before.number && before.source;
    before = now;
    if (!stays) {
      if (stuck_in.load()) stop_listening();
      termination = Clock::time_point::max();
      continue;
    }
    if (!stuck_in.load()) listen(now.source);
    if (!terminated.load()) continue;
    if (termination == Clock::time_point::max()) termination = Clock::now() + kUntilTermination;
    if (Clock::now() < termination) continue;
    stop_listening();
    signal(SIGTERM, SIG_DFL);
    kill(getpid(), SIGTERM);
  }
}

}  // namespace

void watch_this_thread() {
  static int watched = -1;  // by process: threads do not follow into a fork
  if (watched == fork_count()) return;
  watched = fork_count();
  stuck_in.store(nullptr);
  try {
    start_thread("raceway-ctrl-c", [thread = this_thread()] { watch(thread); }).detach();
  } catch (const std::system_error&) {
    // Without it all works as in any extension module: Ctrl-C waits for the code to return.
  }
}

}  // namespace raceway
