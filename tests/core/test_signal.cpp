// Signal, Lane and Meter: what the crew is made of.
#include <deque>
#include <memory>
#include <random>
#include <thread>

#include "check.hpp"
#include "lane.hpp"
#include "meter.hpp"
#include "signal.hpp"

using namespace raceway;
using namespace std::chrono_literals;

namespace {

auto at_least(std::size_t least) {
  return [least](int) { return least; };
}

// One token goes round a ring of threads that sleep until it is theirs: a single lost wake-up stops it for ever.
void pass_token_around(std::size_t threads, int rounds, std::chrono::nanoseconds patience, bool polite = false) {
  std::vector<Signal> signals(threads);
  std::vector<std::atomic<int>> tokens(threads);
  const auto play = [&](std::size_t self) {
    Patience spin(patience);
    spin.set_polite(polite);
    for (int round = 0; round < rounds; ++round) {
      while (true) {
        const std::uint32_t seen = signals[self].now();
        if (tokens[self].exchange(0) != 0) break;
        signals[self].wait(seen, spin);
      }
      const std::size_t next = (self + 1) % threads;
      tokens[next].store(1);
      signals[next].raise();
    }
  };
  tokens[0].store(1);
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < threads; ++i) others.emplace_back(play, i);
  play(0);
  for (auto& other : others) other.join();
  CHECK_EQUAL(tokens[0].load(), 1);
}

// Takes or steals until `total` environments were seen, in `threads` threads, while the caller puts them.
void share_out(std::size_t total, std::size_t threads, std::size_t least, unsigned seed) {
  Lane lane;
  std::vector<std::atomic<int>> taken(total);
  std::atomic<std::size_t> count{0};
  const auto receive = [&](std::size_t self) {
    while (count.load() < total) {
      const Range range = self % 2 == 0 ? lane.take(at_least(least)) : lane.steal(at_least(least));
      for (std::size_t env = range.first; env < range.first + range.count; ++env) taken[env].fetch_add(1);
      count.fetch_add(range.count);
      if (!range) std::this_thread::yield();
    }
  };
  std::vector<std::thread> others;
  for (std::size_t i = 0; i < threads; ++i) others.emplace_back(receive, i);
  std::mt19937 random(seed);
  for (std::size_t put = 0; put < total;) {
    const std::size_t size = std::min<std::size_t>(1 + random() % 9, total - put);
    lane.put({put, size});
    put += size;
    if (random() % 16 == 0) std::this_thread::yield();
  }
  for (auto& other : others) other.join();
  for (const auto& times : taken) CHECK_EQUAL(times.load(), 1);
  CHECK(!lane.take(at_least(1)) && !lane.steal(at_least(1)));
}

}  // namespace

CASE("no wake-up is lost between threads that only sleep") {
  pass_token_around(2, 5000, 0ns);
  pass_token_around(5, 1000, 0ns);
}

CASE("no wake-up is lost between threads that spin and then sleep") {
  pass_token_around(2, 5000, 20us);
  pass_token_around(4, 1000, 1us);
}

CASE("one raise wakes all who wait") {
  Signal signal;
  std::atomic<int> awake{0};
  for (int round = 0; round < 200; ++round) {
    const std::uint32_t seen = signal.now();
    std::vector<std::thread> waiters;
    for (int i = 0; i < 4; ++i) {
      waiters.emplace_back([&, i] {
        Patience patience(std::chrono::microseconds(10 * i));
        if (signal.wait(seen, patience)) awake.fetch_add(1);
      });
    }
    signal.raise();
    for (auto& waiter : waiters) waiter.join();
  }
  CHECK_EQUAL(awake.load(), 800);
}

CASE("raise_one leaves sleepers alone while somebody spins, and loses nothing when the spinner gives up") {
  Signal signal;
  std::atomic<int> work{0}, done{0}, stop{0};
  const auto serve = [&](Patience patience) {
    while (stop.load() == 0) {
      const std::uint32_t seen = signal.now();
      int left = work.load();
      while (left > 0 && !work.compare_exchange_weak(left, left - 1)) {
      }
      if (left > 0) {
        done.fetch_add(1);
      } else {
        signal.wait(seen, patience, Clock::now() + std::chrono::seconds(10));
      }
    }
  };
  // One spins for a moment only, so that raises meet it spinning, giving up and asleep.
  std::thread spinner(serve, Patience(std::chrono::microseconds(20)));
  std::thread sleeper(serve, Patience(std::chrono::nanoseconds(0)));
  for (int i = 1; i <= 2000; ++i) {
    work.fetch_add(1);
    signal.raise_one();
    const auto deadline = Clock::now() + std::chrono::seconds(5);
    while (done.load() < i && Clock::now() < deadline) std::this_thread::yield();
    CHECK(done.load() == i);
    if (i % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(i % 50));
  }
  stop.store(1);
  signal.raise();
  spinner.join();
  sleeper.join();
}

CASE("raise_one wakes one of those who sleep, and as many raises wake as many") {
  Signal signal;
  std::atomic<int> awake{0};
  const std::uint32_t seen = signal.now();
  std::vector<std::thread> waiters;
  for (int i = 0; i < 4; ++i) {
    waiters.emplace_back([&] {
      Patience patience(0ns);
      if (signal.wait(seen, patience)) awake.fetch_add(1);
    });
  }
  std::this_thread::sleep_for(100ms);
  for (int raised = 1; raised <= 4; ++raised) {
    signal.raise_one();
    CHECK(check::comes_true([&] { return awake.load() == raised; }));
    std::this_thread::sleep_for(20ms);
    CHECK_EQUAL(awake.load(), raised);
  }
  for (auto& waiter : waiters) waiter.join();
}

CASE("raises from many threads at once are all counted") {
  Signal signal;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 10'000; ++k) signal.raise();
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK_EQUAL(signal.now(), 40'000U);
}

CASE("a wait ends at its deadline, and not before") {
  Signal signal;
  for (const auto patience : {0ns, 100'000ns}) {
    Patience spin(patience);
    const auto start = Clock::now();
    CHECK(!signal.wait(signal.now(), spin, start + 30ms));
    const auto took = Clock::now() - start;
    CHECK(took >= 30ms);
    CHECK(took < 2s);
    CHECK(!signal.wait(signal.now(), spin, Clock::now() - 1s));
  }
}

CASE("a raise that came before the wait is not waited for, whatever the deadline") {
  Signal signal;
  Patience spin(0ns);
  const std::uint32_t seen = signal.now();
  signal.raise();
  CHECK(signal.wait(seen, spin));
  CHECK(signal.wait(seen, spin, Clock::now() - 1s));
}

CASE("waits that are usually short are spun through, long ones slept through, and one long one changes nothing") {
  Patience patience(100us);
  CHECK_EQUAL(patience.now().count(), 100'000);
  for (int i = 0; i < 20; ++i) patience.learn(5us);
  patience.learn(1h);
  CHECK_EQUAL(patience.now().count(), 100'000);
  for (int i = 0; i < 20; ++i) patience.learn(1ms);
  CHECK_EQUAL(patience.now().count(), 0);
  for (int i = 0; i < 8; ++i) patience.learn(70us);  // slept through, though short
  CHECK_EQUAL(patience.now().count(), 100'000);
}

CASE("a polite waiter that lost its CPU sleeps through the next waits, ever more of them, and then tries again") {
  Patience patience(100us);
  patience.set_polite(true);
  const auto waits_until_it_spins = [&] {
    int waits = 0;
    for (; patience.now() == 0ns; ++waits) patience.learn(5us);
    return waits;
  };
  CHECK_EQUAL(waits_until_it_spins(), 0);
  int before = 0;
  for (int i = 0; i < 5; ++i) {
    patience.lost_cpu();
    const int waits = waits_until_it_spins();
    CHECK(waits > before);
    before = waits;
  }
  for (int i = 0; i < 10'000; ++i) patience.learn(5us);
  patience.lost_cpu();
  CHECK(waits_until_it_spins() < before);
}

CASE("no wake-up is lost between polite threads, though they are more than the CPUs") {
  pass_token_around(2, 5000, 20us, true);
  pass_token_around(6, 1000, 20us, true);
}

CASE("a lane is taken from the front and stolen from the back, at least so many at a time") {
  Lane lane;
  CHECK(!lane.take(at_least(1)) && !lane.steal(at_least(1)));
  lane.put({100, 16});
  const Range front = lane.take(at_least(3)), back = lane.steal(at_least(3));
  CHECK_EQUAL(front.first, 100U);
  CHECK(front.count >= 3 && front.count < 16);
  CHECK_EQUAL(back.first + back.count, 116U);
  CHECK(back.count >= 3 && front.first + front.count <= back.first);
  const Range rest = lane.take(at_least(50));
  CHECK_EQUAL(rest.first, front.first + front.count);
  CHECK_EQUAL(rest.first + rest.count, back.first);
  CHECK(!lane.take(at_least(1)) && !lane.steal(at_least(1)));
}

CASE("environments that are worth a chunk each are taken one by one: the rest can be stolen") {
  Lane lane;
  lane.put({0, 64});
  CHECK_EQUAL(lane.take(at_least(1)).count, 1U);
}

CASE("a lane goes around its ring many times, grows, and keeps its order") {
  Lane lane;
  std::deque<std::size_t> expected;
  std::mt19937 random(1);
  std::size_t put = 0;
  for (int i = 0; i < 10'000; ++i) {
    if (random() % 2 == 0 && expected.size() < static_cast<std::size_t>(3 + i / 100)) {
      lane.put({put, 1});
      expected.push_back(put++);
    } else if (!expected.empty() && random() % 2 == 0) {
      CHECK_EQUAL(lane.take(at_least(1)).first, expected.front());
      expected.pop_front();
    } else if (!expected.empty()) {
      CHECK_EQUAL(lane.steal(at_least(1)).first, expected.back());
      expected.pop_back();
    }
  }
}

CASE("clear drops what nobody took and says how much; the lane works on") {
  Lane lane;
  lane.put({0, 5});
  lane.put({5, 3});
  const Range taken = lane.take(at_least(2));
  CHECK_EQUAL(lane.clear(), 8 - taken.count);
  CHECK_EQUAL(lane.clear(), 0U);
  CHECK(!lane.take(at_least(1)));
  lane.put({7, 1});
  CHECK_EQUAL(lane.take(at_least(1)).first, 7U);
}

CASE("every environment is taken exactly once, whoever takes and steals") {
  for (unsigned seed = 0; seed < 20; ++seed) share_out(2000, 2 + seed % 3, 1 + seed % 4, seed);
}

CASE("a meter begins with the cheapest of four samples, then follows slowly") {
  Meter meter;
  CHECK(!meter.trained());
  CHECK_EQUAL(meter.busy(), 1.0);
  for (const double ns : {900.0, 100.0, 500.0, 300.0}) meter.add_cost(ns);
  CHECK(meter.trained());
  CHECK_EQUAL(meter.cost_ns(), 100.0);
  meter.add_cost(9000.0);  // the thread was not on a CPU, most likely
  CHECK(meter.cost_ns() > 100.0 && meter.cost_ns() <= 9000.0 / 8 + 100);
  for (int i = 0; i < 200; ++i) meter.add_cost(900.0);
  CHECK(meter.cost_ns() > 890.0 && meter.cost_ns() < 910.0);
  meter.add_busy(0.0);
  CHECK_EQUAL(meter.busy(), 0.75);
}
