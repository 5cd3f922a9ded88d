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

// A meter that knows the cost already, so that no run is spent on learning it.
void teach(Meter& meter, double cost_ns, double busy = 1.0) {
  for (int i = 0; i < 4; ++i) meter.add_cost(cost_ns);
  for (int i = 0; i < 40; ++i) meter.add_busy(busy);
}

}  // namespace

CASE("run covers each environment exactly once, for any number of them and of workers") {
  for (const int workers : {1, 2, 3, 4, 8, 16}) {
    for (const double cost_ns : {0.0, 1e5}) {  // unknown at first, or worth all threads
      Meter meter;
      Ledger ledger(300);
      Crew crew(settings(workers, 16), 300, [&](Range range) { ledger.note(range); });
      int runs = 0;
      for (const std::size_t n : {300U, 1U, 2U, 3U, 7U, 16U, 17U, 64U, 255U, 300U}) {
        if (cost_ns > 0) teach(meter, cost_ns);
        crew.run(n, meter);
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
    Meter meter;
    teach(meter, 20'000);
    Ledger ledger(97);
    Crew crew(settings(workers, 16), 97, [&](Range range) {
      delay_at_random();
      ledger.note(range);
    });
    for (int run = 1; run <= 100; ++run) {
      teach(meter, 20'000);
      crew.run(97, meter);
      CHECK(ledger.each(run, 0, 97));  // and all are done when it returns
    }
  }
}

CASE("nothing to do is done at once") {
  Meter meter;
  Crew crew(settings(4, 4), 8, [](Range) { CHECK(false); });
  crew.run(0, meter);
  crew.post({}, meter);
  crew.drain();
}

CASE("cheap work is done by the caller: no thread is started") {
  Meter meter;
  Ledger ledger(8);
  Crew crew(settings(4, 4), 8, [&](Range range) { ledger.note(range); });
  for (int i = 0; i < 200; ++i) crew.run(8, meter);
  CHECK_EQUAL(ledger.threads(), 1U);
  CHECK_EQUAL(crew.threads(), 0);
}

CASE("work that computes is shared by as many threads as there are CPUs, and no more") {
  Meter meter;
  Ledger ledger(64);
  Crew crew(settings(8, 2), 64, [&](Range range) {
    for (std::size_t i = 0; i < range.count; ++i) compute_for(100us);
    ledger.note(range);
  });
  for (int i = 0; i < 5; ++i) crew.run(64, meter);
  CHECK_EQUAL(ledger.threads(), 2U);
}

CASE("work that waits is shared by all workers, however few CPUs there are") {
  Meter meter;
  Ledger ledger(64);
  Crew crew(settings(8, 1), 64, [&](Range range) {
    for (std::size_t i = 0; i < range.count; ++i) std::this_thread::sleep_for(1ms);
    ledger.note(range);
  });
  crew.run(64, meter);
  const auto start = Clock::now();
  crew.run(64, meter);
  CHECK(ledger.threads() > 4);
  CHECK(Clock::now() - start < 48ms);  // one thread would take 64 ms and more
}

CASE("work that computes again after it waited goes back to as many threads as CPUs") {
  Meter meter;
  teach(meter, 3e6, 0.05);
  std::atomic<int> at_once{0}, most{0};
  Crew crew(settings(8, 1), 32, [&](Range range) {
    const int now = at_once.fetch_add(1) + 1;
    for (int seen = most.load(); seen < now && !most.compare_exchange_weak(seen, now);) continue;
    double sink = 0.3;
    for (std::size_t i = 0; i < range.count * 1'000'000; ++i) sink = 3.9 * sink * (1.0 - sink);
    CHECK(sink >= 0.0);
    at_once.fetch_sub(1);
  });
  for (int i = 0; i < 8; ++i) {
    most.store(0);
    crew.run(32, meter);
  }
  CHECK(most.load() <= 2);
}

CASE("post hands out, drain waits for all of it") {
  Meter meter;
  Ledger ledger(100);
  Crew crew(settings(4, 2), 100, [&](Range range) {
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
    crew.post({ranges.begin(), middle}, meter);
    crew.post({middle, ranges.end()}, meter);
    crew.drain();
    CHECK(ledger.each(round, 0, 100));
  }
}

CASE("what is posted is done without the caller") {
  for (const int workers : {1, 2, 4}) {
    Meter meter;
    std::atomic<int> done{0};
    Crew crew(settings(workers, 2), 4, [&](Range range) {
      std::this_thread::sleep_for(1ms);
      done.fetch_add(static_cast<int>(range.count));
    });
    bool comes = true;
    for (int round = 1; round <= 5 && comes; ++round) {
      crew.post({{0, 4}}, meter);
      comes = check::comes_true([&] { return done.load() == 4 * round; }, 2s);
    }
    CHECK(comes);
  }
}

CASE("what is posted while one worker is in a long step is done by another") {
  Meter meter;
  std::atomic<bool> release{false}, entered{false};
  std::atomic<int> done{0};
  Crew crew(settings(4, 4), 4, [&](Range range) {
    if (range.first == 0) {
      entered.store(true);
      check::comes_true([&] { return release.load(); });
    }
    done.fetch_add(static_cast<int>(range.count));
  });
  crew.post({{0, 1}}, meter);
  CHECK(check::comes_true([&] { return entered.load(); }));
  for (std::size_t env = 1; env < 4; ++env) crew.post({{env, 1}}, meter);
  CHECK(check::comes_true([&] { return done.load() == 3; }, 3s));
  release.store(true);
  crew.drain();
  CHECK_EQUAL(done.load(), 4);
}

CASE("environments posted one at a time are stepped by several workers") {
  Meter meter;
  teach(meter, 2e6, 0.0);
  std::atomic<int> at_once{0}, most{0};
  Crew crew(settings(4, 2), 8, [&](Range range) {
    for (std::size_t i = 0; i < range.count; ++i) {
      const int now = at_once.fetch_add(1) + 1;
      for (int seen = most.load(); seen < now && !most.compare_exchange_weak(seen, now);) continue;
      std::this_thread::sleep_for(20ms);
      at_once.fetch_sub(1);
    }
  });
  for (std::size_t env = 0; env < 8; ++env) crew.post({{env, 1}}, meter);
  crew.drain();
  CHECK(most.load() >= 3);
}

CASE("run and post take turns on one crew") {
  Meter first, second;
  Ledger ledger(50);
  Crew crew(settings(3, 2), 50, [&](Range range) {
    delay_at_random();
    ledger.note(range);
  });
  for (int round = 1; round <= 100; ++round) {
    crew.post({{0, 20}, {25, 25}}, first);
    crew.drain();
    crew.run(50, second);
    CHECK(ledger.each(2 * round, 0, 20));
    CHECK(ledger.each(round, 20, 5));
  }
}

CASE("stop drops what is queued and returns promptly") {
  Meter meter;
  teach(meter, 5e6, 0.0);
  std::atomic<int> done{0};
  Crew crew(settings(2, 2), 1000, [&](Range range) {
    for (std::size_t i = 0; i < range.count; ++i) std::this_thread::sleep_for(5ms);
    done.fetch_add(static_cast<int>(range.count));
  });
  crew.post({{0, 1000}}, meter);
  std::this_thread::sleep_for(10ms);
  const auto start = Clock::now();
  CHECK(crew.stop(10s));
  CHECK(Clock::now() - start < 4s);
  CHECK(done.load() < 1000);
  crew.drain();  // nothing is left to wait for
  CHECK(crew.stop(0s));
}

CASE("a crew that never worked, or only in its caller, stops") {
  Crew idle(settings(4, 4), 4, [](Range) {});
  CHECK(idle.stop(0s));
}

CASE("crews come and go, at work or idle") {
  for (int i = 0; i < 300; ++i) {
    Meter meter;
    teach(meter, 1e5);
    std::atomic<int> done{0};
    Crew crew(settings(1 + i % 5, 4), 16, [&](Range range) { done.fetch_add(static_cast<int>(range.count)); });
    if (i % 3 != 0) crew.run(16, meter);
    if (i % 4 == 0) crew.post({{0, 8}, {8, 8}}, meter);
    if (i % 7 == 0) CHECK(crew.stop(10s));
  }
}

CASE("pinned workers are on their CPU") {
  Meter meter;
  teach(meter, 1e6, 0.0);
  cpu_set_t mine;
  sched_getaffinity(0, sizeof mine, &mine);
  int cpu = 0;
  while (!CPU_ISSET(static_cast<std::size_t>(cpu), &mine)) ++cpu;
  std::atomic<int> elsewhere{0};
  const std::thread::id caller = std::this_thread::get_id();
  Crew crew({3, 3, {cpu, cpu, cpu}}, 16, [&](Range) {
    if (std::this_thread::get_id() != caller && sched_getcpu() != cpu) elsewhere.fetch_add(1);
    std::this_thread::sleep_for(1ms);
  });
  crew.post({{0, 16}}, meter);
  crew.drain();
  CHECK_EQUAL(elsewhere.load(), 0);
}

// Last, for its thread is still at work when the process ends, as it may be behind a closed Python pool.
CASE("stop gives up on a worker that is stuck, and the process ends all the same") {
  static Meter meter;
  static std::atomic<bool> entered{false};
  static Crew* const kLeaked = new Crew(settings(2, 2), 4, [](Range range) {
    if (range.first != 0) return;
    entered.store(true);
    std::this_thread::sleep_for(1h);
  });
  kLeaked->post({{0, 1}}, meter);
  CHECK(check::comes_true([] { return entered.load(); }));
  const auto start = Clock::now();
  CHECK(!kLeaked->stop(50ms));
  CHECK(Clock::now() - start >= 50ms);
  CHECK(Clock::now() - start < 2s);
}
