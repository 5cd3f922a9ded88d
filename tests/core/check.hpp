// A small test harness: named cases, checks that print where and what, one closing line.
//
//   CASE("a slab hands the same block out again") { CHECK_EQUAL(slab->take(), block); }
//
// A case that hangs ends the process: a wait that never ends is a failure like any other.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace raceway::check {

struct Case {
  const char* name;
  void (*body)();
};

inline std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}

struct Registration {
  Registration(const char* name, void (*body)()) { cases().push_back({name, body}); }
};

inline std::atomic<int> failed_checks{0};
inline std::atomic<const char*> running{nullptr};

// Checks are made by several threads.
inline void fail(const char* file, int line, const std::string& text) {
  failed_checks.fetch_add(1);
  std::ostringstream out;
  out << file << ":" << line << ": in \"" << running.load() << "\": " << text << "\n";
  std::cerr << out.str() << std::flush;
}

template <class T>
std::string shown(const T& value) {
  std::ostringstream out;
  if constexpr (requires { out << value; }) {
    out.precision(17);
    out << value;
  } else {
    out << "a value that cannot be printed";
  }
  return out.str();
}

template <class T>
std::string shown(const std::vector<T>& values) {
  std::string text = "{";
  for (const auto& value : values) text += (text.size() > 1 ? ", " : "") + shown(static_cast<T>(value));
  return text + "}";
}

template <class Left, class Right>
void equal(const char* file, int line, const char* expression, const Left& left, const Right& right) {
  if (!(left == right)) fail(file, line, std::string(expression) + ": " + shown(left) + " and " + shown(right));
}

// Whether `call` throws an Error whose text contains `part`.
template <class Error, class Call>
void throws(const char* file, int line, const char* expression, const char* part, Call call) {
  try {
    call();
    fail(file, line, std::string(expression) + " threw nothing");
  } catch (const Error& error) {
    if (std::strstr(error.what(), part) == nullptr) {
      fail(file, line, std::string(expression) + " said \"" + error.what() + "\", without \"" + part + "\"");
    }
  } catch (const std::exception& error) {
    fail(file, line, std::string(expression) + " threw another kind of error: " + error.what());
  }
}

// Whether `condition` comes true within `limit`.
inline bool comes_true(const std::function<bool()>& condition,
                       std::chrono::milliseconds limit = std::chrono::seconds(10)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

// Sanitizers make everything ten times as slow.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::chrono::seconds kLongest{600};
#else
constexpr std::chrono::seconds kLongest{60};
#endif

inline void watch_for_hangs(std::chrono::seconds limit) {
  std::thread([limit] {
    const char* seen = nullptr;
    auto since = std::chrono::steady_clock::now();
    while (true) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      const auto now = std::chrono::steady_clock::now();
      if (const char* name = running.load(); name != seen) {
        seen = name;
        since = now;
      } else if (name != nullptr && now - since > limit) {
        std::fprintf(stderr, "\"%s\" hangs\n", name);
        _exit(2);
      }
    }
  }).detach();
}

// `only`: run the cases whose name contains it.
inline int run_all(const char* only) {
  watch_for_hangs(kLongest);
  int passed = 0, failed = 0;
  for (const Case& each : cases()) {
    if (only != nullptr && std::strstr(each.name, only) == nullptr) continue;
    const int before = failed_checks.load();
    running.store(each.name);
    try {
      each.body();
    } catch (const std::exception& error) {
      fail(__FILE__, __LINE__, std::string("it threw ") + error.what());
    }
    running.store(nullptr);
    (failed_checks.load() == before ? passed : failed) += 1;
  }
  std::cout << passed << " passed, " << failed << " failed" << std::endl;
  return failed == 0 ? 0 : 1;
}

}  // namespace raceway::check

#define RACEWAY_JOIN_(left, right) left##right
#define RACEWAY_JOIN(left, right) RACEWAY_JOIN_(left, right)
#define RACEWAY_CASE(name, body, registered)                        \
  static void body();                                               \
  static const raceway::check::Registration registered(name, body); \
  static void body()
#define CASE(name) RACEWAY_CASE(name, RACEWAY_JOIN(case_, __LINE__), RACEWAY_JOIN(registered_, __LINE__))

#define CHECK(expression) ((expression) ? void() : raceway::check::fail(__FILE__, __LINE__, #expression " is false"))
#define CHECK_EQUAL(left, right) raceway::check::equal(__FILE__, __LINE__, #left " == " #right, left, right)
#define CHECK_THROWS(Error, part, expression) \
  raceway::check::throws<Error>(__FILE__, __LINE__, #expression, part, [&] { expression; })

int main(int argc, char** argv) {
  return raceway::check::run_all(argc > 1 ? argv[1] : nullptr);
}
