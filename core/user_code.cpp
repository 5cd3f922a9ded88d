#include "user_code.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>

namespace raceway {
namespace {

// A slot for each thread. The handler finds its own by the thread's id: thread-local memory may be made when it is
// first touched, which is nothing to do in a signal handler.
struct alignas(64) ThreadSlot {
  std::atomic<pid_t> thread{0};
  std::atomic<const char*> source{nullptr};
  std::atomic<std::uint64_t> entered{0};
};
std::array<ThreadSlot, 1024> slots;

// A second stack for signal handlers, unless the thread has one: after endless recursion there is no room on the first.
class HandlerStack {
 public:
  HandlerStack() {
    stack_t there{};
    if (sigaltstack(nullptr, &there) != 0 || !(there.ss_flags & SS_DISABLE)) return;
    const std::size_t size = std::max<std::size_t>(static_cast<std::size_t>(SIGSTKSZ), 1 << 16);
    memory_ = std::make_unique<std::byte[]>(size);
    there = {memory_.get(), 0, size};
    sigaltstack(&there, nullptr);
  }
  ~HandlerStack() {
    stack_t there{};
    if (!memory_ || sigaltstack(nullptr, &there) != 0 || there.ss_sp != memory_.get()) return;
    there = {nullptr, SS_DISABLE, 0};
    sigaltstack(&there, nullptr);
  }
  HandlerStack(const HandlerStack&) = delete;
  HandlerStack& operator=(const HandlerStack&) = delete;

 private:
  std::unique_ptr<std::byte[]> memory_;
};

thread_local ThreadSlot* own_slot = nullptr;  // needs no making, unlike the next

// The slot of a thread. There is none for threads beyond those: what they do is not told.
struct SlotOwner {
  SlotOwner() {
    for (ThreadSlot& each : slots) {
      pid_t nobody = 0;
      if (each.thread.compare_exchange_strong(nobody, this_thread())) {
        own_slot = slot = &each;
        return;
      }
    }
  }
  ~SlotOwner() {
    own_slot = nullptr;
    if (slot) slot->thread.store(0);
  }
  ThreadSlot* slot = nullptr;
  HandlerStack stack;
};
thread_local SlotOwner slot_owner;

// In the child of a fork the only thread has another id, and the slots of the others are free.
void after_fork() {
  for (ThreadSlot& each : slots) {
    if (&each == own_slot) continue;
    each.source.store(nullptr, std::memory_order_relaxed);
    each.thread.store(0);
  }
  if (own_slot) own_slot->thread.store(this_thread());
}

struct Handled {
  int number;
  const char* name;
};
constexpr Handled kHandled[] = {
    {SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"}, {SIGABRT, "SIGABRT"},
};
struct sigaction before[std::size(kHandled)];

// Lets the handler that was there before have the signal: the instruction that failed is run again when we return, or
// the signal comes again if it was sent.
void hand_back(int number, const siginfo_t* info, std::size_t index) {
  sigaction(number, &before[index], nullptr);
  if (info->si_code <= 0) raise(number);  // blocked until we return
}

void on_crash(int number, siginfo_t* info, void* context) {
  const int saved = errno;
  std::size_t index = 0;
  while (kHandled[index].number != number) ++index;
  if (const char* source = user_code_of(this_thread()).source) {
    put("\nraceway: ");
    put(kHandled[index].name);
    put(" in the code of ");
    put(source);
    put(". To find out why: raceway check ");
    put(source);
    put("\n");
    hand_back(number, info, index);
  } else if (before[index].sa_handler == SIG_DFL || before[index].sa_handler == SIG_IGN) {  // whatever its flags say
    hand_back(number, info, index);
  } else if (before[index].sa_flags & SA_SIGINFO) {
    before[index].sa_sigaction(number, info, context);
  } else {
    before[index].sa_handler(number);
  }
  errno = saved;
}

}  // namespace

void UserCodeScope::enter(const char* source) {
  if (!slot_owner.slot) return;
  slot_ = &slot_owner.slot->source;
  slot_->store(source, std::memory_order_relaxed);
  std::atomic<std::uint64_t>& entered = slot_owner.slot->entered;
  entered.store(entered.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

UserCodeCall user_code_of(pid_t thread) {
  for (const ThreadSlot& slot : slots) {
    if (slot.thread.load(std::memory_order_relaxed) != thread) continue;
    return {slot.source.load(std::memory_order_relaxed), slot.entered.load(std::memory_order_relaxed)};
  }
  return {};
}

pid_t this_thread() {
  return static_cast<pid_t>(syscall(SYS_gettid));
}

void put(const char* text) {
  static_cast<void>(!write(STDERR_FILENO, text, std::strlen(text)));
}

UserCodeCount count_user_code() {
  UserCodeCount all;
  for (const ThreadSlot& slot : slots) {
    if (slot.source.load(std::memory_order_relaxed)) all.inside += 1;
    all.entered += slot.entered.load(std::memory_order_relaxed);
  }
  return all;
}

const char* kept_name(const std::string& name) {
  static std::mutex mutex;
  static std::list<std::string> names;
  const std::lock_guard lock(mutex);
  for (const std::string& each : names) {
    if (each == name) return each.c_str();
  }
  return names.emplace_back(name).c_str();
}

void report_crashes() {
  static std::once_flag once;
  std::call_once(once, [] {
    pthread_atfork(nullptr, nullptr, after_fork);
    for (std::size_t i = 0; i < std::size(kHandled); ++i) {
      struct sigaction action{};
      action.sa_sigaction = on_crash;
      action.sa_flags = SA_SIGINFO | SA_ONSTACK;
      sigemptyset(&action.sa_mask);
      sigaction(kHandled[i].number, nullptr, &before[i]);
      sigaction(kHandled[i].number, &action, nullptr);
    }
  });
}

}  // namespace raceway
