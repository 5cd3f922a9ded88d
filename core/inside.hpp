// Which threads are inside the code of a user's own header: a crash in it is told with the header's name.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>

namespace raceway {

// While one lives, this thread runs code of the header called `source`; null: of ours, and then it does nothing. They
// do not nest. `source` must never be freed: see kept_name().
class Inside {
 public:
  explicit Inside(const char* source) {
    if (source) enter(source);
  }
  ~Inside() {
    if (place_) place_->store(nullptr, std::memory_order_relaxed);
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  void enter(const char* source);

  std::atomic<const char*>* place_ = nullptr;
};

// How many threads are inside now, and how often any has entered: while the first is not 0 and the second does not
// change, one is in a call that does not return.
struct OwnCode {
  std::size_t inside = 0;
  std::uint64_t entered = 0;
};
OwnCode own_code();

// The same of one thread: the header it is inside, or null, and how often it has entered any.
struct Visit {
  const char* source = nullptr;
  std::uint64_t number = 0;
};
Visit visit_of(pid_t thread);
pid_t this_thread();

// Writes to standard error, also from a signal handler.
void put(const char* text);

// The same text, for ever.
const char* kept_name(const std::string& name);

// From now on a signal that ends the process (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT) while its thread is Inside is
// told on standard error, in one line. Whatever handler was there before comes next, and the process ends as it would
// have without us. Called when the first header is loaded; again, it does nothing.
void tell_crashes();

}  // namespace raceway
