// Which threads run code of a user's own header: a crash there is reported with the header's name.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>

namespace raceway {

// Marks this thread as running code of the header called `source`, for the lifetime of the object. A null `source` is
// our own code, and marks nothing. Scopes do not nest. `source` must never be freed: see kept_name().
class UserCodeScope {
 public:
  explicit UserCodeScope(const char* source) {
    if (source) enter(source);
  }
  ~UserCodeScope() {
    if (slot_) slot_->store(nullptr, std::memory_order_relaxed);
  }
  UserCodeScope(const UserCodeScope&) = delete;
  UserCodeScope& operator=(const UserCodeScope&) = delete;

 private:
  void enter(const char* source);

  std::atomic<const char*>* slot_ = nullptr;
};

// How many threads are inside now, and how often any has entered: while the first is not 0 and the second does not
// change, one is in a call that does not return.
struct UserCodeCount {
  std::size_t inside = 0;
  std::uint64_t entered = 0;
};
UserCodeCount count_user_code();

// The same of one thread: the header it is inside, or null, and how often it has entered any.
struct UserCodeCall {
  const char* source = nullptr;
  std::uint64_t number = 0;
};
UserCodeCall user_code_of(pid_t thread);
pid_t this_thread();

// Writes to standard error, also from a signal handler.
void put(const char* text);

// The same text, for ever.
const char* kept_name(const std::string& name);

// From now on a signal that ends the process (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT) while its thread is in a
// UserCodeScope is reported on standard error, in one line. The handler that was there before comes next, and the
// process ends as it would have without us. Called when the first header is loaded; further calls do nothing.
void report_crashes();

}  // namespace raceway
