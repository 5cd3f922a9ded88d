#include <memory>
#include <mutex>
#include <random>
#include <set>

#include "check.hpp"
#include "crew.hpp"

using namespace raceway;
using namespace std::chrono_literals;

namespace {

Crew::Settings settings(int workers, int cpus) {
  return {workers, cpus, {}};
}

// Counts how often each environment was worked on, and by which threads.
class Ledger {
 public:
  explicit Ledger(std::size_t n) : times_(n) {}

  void note(Range range) {
    for (std::size_t env = range.first; env < range.first + range.count; ++env) times_.at(env).fetch_add(1);
    const std::lock_guard lock(mutex_);
    threads_.insert(std::this_thread::get_id());
  }
  std::size_t threads() {
    const std::lock_guard lock(mutex_);
    return threads_.size();
  }
  int times(std::size_t env) const { return times_[env].load(); }
  bool each(int times, std::size_t first, std::size_t count) const {
    for (std::size_t env = first; env < first + count; ++env) {
      if (times_[env].load() != times) return false;
    }
    return true;
  }

 private:
  std::vector<std::atomic<int>> times_;
  std::mutex mutex_;
  std::set<std::thread::id> threads_;
};

void compute_for(std::chrono::nanoseconds time) {
  const auto end = Clock::now() + time;
  while (Clock::now() < end) pause_cpu();
}

// Now and then a thread is late, as it is when others want its CPU.
void delay_at_random() {
  thread_local std::mt19937 random(static_cast<unsigned>(std::hash<std::thread::id>{}(std::this_thread::get_id())));
  const unsigned draw = random() % 64;
  if (draw == 0) std::this_thread::sleep_for(50us);
  if (draw < 16) std::this_thread::yield();
}

// How many are inside a section at once, at most.
class Crowd {
 public:
  void enter() {
    const int now = inside_.fetch_add(1) + 1;
    for (int seen = most_.load(); seen < now && !most_.compare_exchange_weak(seen, now);) continue;
  }
  void leave() { inside_.fetch_sub(1); }
  int most() const { return most_.load(); }
  void forget() { most_.store(0); }

 private:
  std::atomic<int> inside_{0}, most_{0};
};

CASE("a caller that must not be kept leaves unknown work to a thread, which is gone when the cost is known") {
  Ledger ledger(64);
  Crew crew(settings(1, 1), 1, [&](Range range) { ledger.note(range); });
  std::atomic<int> asked{0};
  for (int run = 1; run <= 5; ++run) {
    crew.begin(64, 0);
    CHECK(crew.finish([&] { return ++asked > 0; }));
    CHECK(ledger.each(run, 0, 64));
  }
  CHECK_EQUAL(crew.threads(), 0);
}

CASE("something else can be done aside, and what it throws is thrown") {
  Crew crew(settings(1, 1), 1, [](Range) {});
  const auto caller = std::this_thread::get_id();
  std::thread::id other;
  CHECK(crew.run_in_background([&] { other = std::this_thread::get_id(); }, [] { return true; }));
  CHECK(other != caller && other != std::thread::id());
  const auto fail = [] { throw std::runtime_error("too bad"); };
  CHECK_THROWS(std::runtime_error, "too bad", crew.run_in_background(fail, [] { return true; }));
}

CASE("what is done aside goes on when its caller leaves, and is waited for") {
  std::atomic<bool> open{false}, ended{false};
  Crew crew(settings(1, 1), 1, [](Range) {});
  const auto work = [&] {
    while (!open) std::this_thread::yield();
    ended = true;
  };
  CHECK(!crew.run_in_background(work, [] { return false; }));
  CHECK(!crew.settle(Clock::now() + 10ms));
  CHECK(!crew.stop(Clock::now() + 10ms));
  open = true;
  CHECK(crew.settle(Clock::time_point::max()));
  CHECK(ended);
  crew.run(8, 0);
}

CASE("a caller that leaves when the costs are known by then leaves a crew that can be used again") {
  Ledger ledger(16);
  Crew crew(settings(1, 1), 1, [&](Range range) {
    std::this_thread::sleep_for(10ms);  // each alone, which is how costs are learnt
    ledger.note(range);
  });
  crew.begin(16, 0);
  const auto leave = [&] {  // as a signal handler that takes its time
    while (crew.cost_ns(0) == 0.0) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(20ms);
    return false;
  };
  CHECK(!crew.finish(leave));
  CHECK(crew.settle(Clock::now() + 10s));
  CHECK_EQUAL(ledger.times(15), 0);
  crew.run(16, 0);
  CHECK_EQUAL(ledger.times(15), 1);
}

CASE("a caller may leave all work to others") {
  std::atomic<int> own{0};
  const auto caller = std::this_thread::get_id();
  Crew crew(settings(2, 2), 1, [&](Range) { own += std::this_thread::get_id() == caller; });
  for (int run = 0; run < 20; ++run) {
    crew.begin_long(64, 0);
    CHECK(crew.finish([] { return true; }, true));
  }
  CHECK_EQUAL(own.load(), 0);
}

CASE("a run that its caller leaves goes on, what nobody began is dropped, and the crew is used again") {
  for (const bool is_known : {false, true}) {
    Ledger ledger(64);
    std::atomic<bool> open{true};
    Crew crew(settings(2, 2), 1, [&](Range range) {
      if (is_known) std::this_thread::sleep_for(2ms * range.count);
      while (!open) std::this_thread::yield();
      ledger.note(range);
    });
    if (is_known) crew.run(64, 0);
    const int before = ledger.times(63);
    open = false;
    crew.begin(64, 0);
    CHECK(!crew.finish([] { return false; }));
    CHECK(!crew.settle(Clock::now() + 10ms));
    CHECK_EQUAL(ledger.times(63), before);
    open = true;
    CHECK(crew.settle(Clock::time_point::max()));
    CHECK_EQUAL(ledger.times(63), before);
    crew.run(64, 0);
    CHECK_EQUAL(ledger.times(63), before + 1);
  }
}

}  // namespace

CASE("run covers each environment exactly once, for any number of them and of workers") {
  for (const int workers : {1, 2, 3, 4, 8, 16}) {
    for (const bool expensive : {false, true}) {
      Ledger ledger(300);
      Crew crew(settings(workers, 16), 1, [&](Range range) {
        if (expensive) compute_for(range.count * 5us);
        ledger.note(range);
      });
      int runs = 0;
      for (const std::size_t n : {300U, 1U, 2U, 3U, 7U, 16U, 17U, 64U, 255U, 300U}) {
        crew.run(n, 0);
        runs += 1;
        CHECK_EQUAL(ledger.times(0), runs);
      }
      CHECK(ledger.each(3, 64, 191));  // by the runs of 300, 255 and 300
      CHECK(ledger.each(2, 255, 45));
    }
  }
}

CASE("run covers each environment exactly once with workers that are late at random") {
  for (const int workers : {2, 5, 16}) {
    Ledger ledger(97);
    Crew crew(settings(workers, 16), 1, [&](Range range) {
      compute_for(range.count * 10us);
      delay_at_random();
      ledger.note(range);
    });
    for (int run = 1; run <= 100; ++run) {
      crew.run(97, 0);
      CHECK(ledger.each(run, 0, 97));  // and all are done when it returns
    }
    CHECK(ledger.threads() > 1);
  }
}

CASE("the caller may do something else between the beginning of a run and its end") {
  Ledger ledger(64);
  Crew crew(settings(2, 2), 1, [&](Range range) {
    compute_for(range.count * 20us);
    ledger.note(range);
  });
  for (int run = 1; run <= 50; ++run) {
    crew.begin(64, 0);
    compute_for(50us);
    crew.finish();
    CHECK(ledger.each(run, 0, 64));
  }
}

CASE("each job is done as what it is, and has its own costs") {
  std::atomic<int> cheap{0}, dear{0};
  Crew crew(settings(2, 2), 2, [&](Range range) {
    if (range.job == 1) compute_for(range.count * 50us);
    (range.job == 0 ? cheap : dear).fetch_add(static_cast<int>(range.count));
  });
  for (int run = 0; run < 50; ++run) {
    crew.run(32, 1);
    crew.run(8, 0);
  }
  CHECK_EQUAL(cheap.load(), 400);
  CHECK_EQUAL(dear.load(), 1600);
}

CASE("nothing to do is done at once") {
  Crew crew(settings(4, 4), 1, [](Range) { CHECK(false); });
  crew.run(0, 0);
  crew.drain();
}

CASE("cheap work is done by the caller: no thread is started") {
  // A run during which the kernel took the CPU away looks expensive: one undisturbed crew of several is enough.
  bool undisturbed = false;
  for (int attempt = 0; attempt < 20 && !undisturbed; ++attempt) {
    Crew crew(settings(4, 4), 1, [](Range) { pause_cpu(); });
    for (int i = 0; i < 200; ++i) crew.run(8, 0);
    undisturbed = crew.threads() == 0;
  }
  CHECK(undisturbed);
}

CASE("work that computes is shared by as many threads as there are CPUs, and no more") {
  Ledger ledger(64);
  Crew crew(settings(8, 2), 1, [&](Range range) {
    for (std::size_t i = 0; i < range.count; ++i) compute_for(100us);
    ledger.note(range);
  });
  for (int i = 0; i < 5; ++i) crew.run(64, 0);
  CHECK_EQUAL(ledger.threads(), 2U);
}

CASE("work that waits is shared by all workers, however few CPUs there are") {
  Ledger ledger(64);
  Crew crew(settings(8, 1), 1, [&](Range range) {
    for (std::size_t i = 0; i < range.count; ++i) std::this_thread::sleep_for(1ms);
    ledger.note(range);
  });
  crew.run(64, 0);
  const auto start = Clock::now();
  crew.run(64, 0);
  CHECK(ledger.threads() > 4);
  CHECK(Clock::now() - start < 48ms);  // one thread would take 64 ms and more
}

CASE("work that computes again after it waited goes back to as many threads as CPUs") {
  std::atomic<bool> waits{true};
  Crowd crowd;
  Crew crew(settings(8, 2), 1, [&](Range range) {
    crowd.enter();
    for (std::size_t i = 0; i < range.count; ++i) {
      if (waits.load()) {
        std::this_thread::sleep_for(500us);
      } else {
        compute_for(500us);
      }
    }
    crowd.leave();
  });
  for (int i = 0; i < 20 && crowd.most() <= 4; ++i) crew.run(32, 0);
  CHECK(crowd.most() > 4);
  waits.store(false);
  for (int i = 0; i < 200; ++i) {
    crowd.forget();
    crew.run(32, 0);
    if (crowd.most() <= 2) return;
  }
  CHECK(false);
}

CASE("post hands out, drain waits for all of it") {
  Ledger ledger(100);
  Crew crew(settings(4, 2), 1, [&](Range range) {
    delay_at_random();
    ledger.note(range);
  });
  std::mt19937 random(1);
  for (int round = 1; round <= 200; ++round) {
    std::vector<Range> ranges;
    for (std::size_t at = 0; at < 100;) {
      const std::size_t count = std::min<std::size_t>(1 + random() % 20, 100 - at);
      ranges.push_back({at, count});
      at += count;
    }
    const std::size_t half = ranges.size() / 2;
    const auto middle = ranges.begin() + static_cast<std::ptrdiff_t>(half);
    crew.post({ranges.begin(), middle});
    crew.post({middle, ranges.end()});
    crew.drain();
    CHECK(ledger.each(round, 0, 100));
  }
}

CASE("what is posted is done without the caller") {
  for (const int workers : {1, 2, 4}) {
    std::atomic<int> done{0};
    Crew crew(settings(workers, 2), 1, [&](Range range) {
      std::this_thread::sleep_for(1ms);
      done.fetch_add(static_cast<int>(range.count));
    });
    bool comes = true;
    for (int round = 1; round <= 5 && comes; ++round) {
      crew.post({{0, 4}});
      comes = check::comes_true([&] { return done.load() == 4 * round; }, 2s);
    }
    CHECK(comes);
  }
}

CASE("what is posted while one worker is in a long step is done by another") {
  std::atomic<bool> release{false}, entered{false};
  std::atomic<int> done{0};
  Crew crew(settings(4, 4), 1, [&](Range range) {
    if (range.first == 0) {
      entered.store(true);
      check::comes_true([&] { return release.load(); });
    }
    done.fetch_add(static_cast<int>(range.count));
  });
  crew.post({{0, 1}});
  CHECK(check::comes_true([&] { return entered.load(); }));
  for (std::size_t env = 1; env < 4; ++env) crew.post({{env, 1}});
  CHECK(check::comes_true([&] { return done.load() == 3; }, 3s));
  release.store(true);
  crew.drain();
  CHECK_EQUAL(done.load(), 4);
}

CASE("environments posted one at a time are stepped by several workers") {
  Crowd crowd;
  Crew crew(settings(4, 4), 1, [&](Range range) {
    for (std::size_t i = 0; i < range.count; ++i) {
      crowd.enter();
      std::this_thread::sleep_for(20ms);
      crowd.leave();
    }
  });
  for (int round = 0; round < 5; ++round) {
    crowd.forget();
    for (std::size_t env = 0; env < 8; ++env) crew.post({{env, 1}});
    crew.drain();
    CHECK_EQUAL(crowd.most(), 4);
  }
}

CASE("run and post take turns on one crew") {
  Ledger ledger(50);
  Crew crew(settings(3, 2), 1, [&](Range range) {
    delay_at_random();
    ledger.note(range);
  });
  for (int round = 1; round <= 100; ++round) {
    crew.post({{0, 20}, {25, 25}});
    crew.drain();
    crew.run(50, 0);
    CHECK(ledger.each(2 * round, 0, 20));
    CHECK(ledger.each(round, 20, 5));
  }
}

CASE("stop drops what is queued and returns promptly") {
  std::atomic<int> done{0};
  Crew crew(settings(2, 2), 1, [&](Range range) {
    for (std::size_t i = 0; i < range.count; ++i) std::this_thread::sleep_for(5ms);
    done.fetch_add(static_cast<int>(range.count));
  });
  crew.post({{0, 1000}});
  std::this_thread::sleep_for(10ms);
  const auto start = Clock::now();
  crew.request_stop();
  CHECK(crew.stop(Clock::now() + 10s));
  CHECK(Clock::now() - start < 4s);
  CHECK(done.load() < 1000);
  crew.drain();  // nothing is left to wait for
  CHECK(crew.stop(Clock::now()));
}

CASE("a crew that never worked, or only in its caller, stops") {
  Crew idle(settings(4, 4), 1, [](Range) {});
  idle.request_stop();
  CHECK(idle.stop(Clock::now()));
}

CASE("crews come and go, at work or idle") {
  for (int i = 0; i < 300; ++i) {
    std::atomic<int> done{0};
    Crew crew(settings(1 + i % 5, 4), 1, [&](Range range) { done.fetch_add(static_cast<int>(range.count)); });
    if (i % 3 != 0) crew.run(16, 0);
    if (i % 4 == 0) crew.post({{0, 8}, {8, 8}});
    if (i % 7 == 0) crew.request_stop();
  }
}

CASE("pinned workers are on their CPU") {
  cpu_set_t mine;
  sched_getaffinity(0, sizeof mine, &mine);
  int cpu = 0;
  while (!CPU_ISSET(static_cast<std::size_t>(cpu), &mine)) ++cpu;
  std::atomic<int> elsewhere{0};
  const std::thread::id caller = std::this_thread::get_id();
  Crew crew({3, 3, {cpu, cpu, cpu}}, 1, [&](Range) {
    if (std::this_thread::get_id() != caller && sched_getcpu() != cpu) elsewhere.fetch_add(1);
    std::this_thread::sleep_for(1ms);
  });
  crew.post({{0, 16}});
  crew.drain();
  CHECK_EQUAL(elsewhere.load(), 0);
}

// Last, for its thread is still at work when the process ends, as it may be behind a closed Python pool.
CASE("stop gives up on a worker that is stuck, and the process ends all the same") {
  static std::atomic<bool> entered{false};
  static Crew* const kLeaked = new Crew(settings(2, 2), 1, [](Range range) {
    if (range.first != 0) return;
    entered.store(true);
    std::this_thread::sleep_for(1h);
  });
  kLeaked->post({{0, 1}});
  CHECK(check::comes_true([] { return entered.load(); }));
  const auto start = Clock::now();
  kLeaked->request_stop();
  CHECK(!kLeaked->stop(Clock::now() + 50ms));
  CHECK(!kLeaked->stop(Clock::now()));  // asked again, it still runs
  CHECK(Clock::now() - start >= 50ms);
  CHECK(Clock::now() - start < 2s);
}
