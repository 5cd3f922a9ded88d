// The pool's asynchronous side: whoever is ready is received, exactly once.
#include <deque>
#include <mutex>
#include <random>

#include "check.hpp"
#include "scripted.hpp"

using namespace raceway;
using namespace raceway::test;
using namespace std::chrono_literals;

namespace {

// Receives `rounds` batches and sends what came back each time; counts what was seen of each environment.
std::vector<int> play(Rig<>& rig, int rounds) {
  std::vector<int> seen(rig.pool.settings().num_envs, 0);
  rig.act(1);
  rig.pool.async_reset();
  for (int round = 0; round < rounds; ++round) {
    const bool comes = rig.recv(5s);
    CHECK(comes);
    if (!comes) break;
    const std::vector<std::size_t> envs = rig.received();
    CHECK(std::is_sorted(envs.begin(), envs.end()));
    for (std::size_t row = 0; row < envs.size(); ++row) {
      CHECK_EQUAL(rig.batch_obs(row, 0), static_cast<float>(seen[envs[row]]));  // no step lost, none done twice
      seen[envs[row]] += 1;
    }
    rig.send(envs);
  }
  return seen;
}

}  // namespace

CASE("what is sent comes back exactly once, with workers that are late at random") {
  for (const int workers : {1, 2, 4, 16}) {
    for (const std::size_t batch_size : {1U, 3U, 8U, 16U}) {
      Rig<> rig(settings(16, batch_size, workers), {real("delay_us", 200.0)});
      const std::vector<int> seen = play(rig, 60);
      int total = 0;
      for (const int each : seen) total += each;
      CHECK_EQUAL(total, 60 * static_cast<int>(batch_size));
    }
  }
}

CASE("cheap environments come back exactly once, too") {
  for (const std::size_t batch_size : {1U, 5U, 20U, 40U}) {
    Rig<> rig(settings(40, batch_size, 4));
    play(rig, 2000);
  }
}

CASE("a batch of all environments is received in order, whatever the number of workers") {
  for (const int workers : {1, 2, 4}) {
    Rig<> rig(settings(6, 6, workers), {real("delay_us", 500.0)});
    rig.pool.async_reset();
    for (std::size_t round = 0; round < 20; ++round) {
      const bool comes = rig.recv(5s);
      CHECK(comes);
      if (!comes) break;
      const std::vector<std::size_t> all{0, 1, 2, 3, 4, 5};
      CHECK_EQUAL(rig.received(), all);
      rig.send(all);
    }
  }
}

CASE("one slow environment does not hold up the others") {
  Rig<> rig(settings(8, 2, 4), {real("delay_us", 100.0)}, 0, {real("delay_us", 1e6)});
  const auto start = Clock::now();
  const std::vector<int> seen = play(rig, 100);
  CHECK(Clock::now() - start < 5s);
  CHECK(seen[0] < 20);
}

CASE("one thread sends while another receives: nothing is lost or doubled") {
  for (const int workers : {1, 3}) {
    Rig<> rig(settings(12, 3, workers), {real("delay_us", 100.0)});
    rig.act(1);
    std::mutex mutex;
    std::deque<std::vector<std::size_t>> to_send;
    std::vector<int> seen(12, 0);
    constexpr int kRounds = 200;
    rig.pool.async_reset();
    std::thread receiver([&] {
      for (int round = 0; round < kRounds; ++round) {
        const Pool::Turn turn(rig.pool, false, true);
        CHECK(rig.recv(20s, true));
        const std::vector<std::size_t> envs = rig.received();
        for (std::size_t row = 0; row < envs.size(); ++row) {
          CHECK_EQUAL(rig.batch_obs(row, 0), static_cast<float>(seen[envs[row]]++));
        }
        const std::lock_guard lock(mutex);
        to_send.push_back(envs);
      }
    });
    for (int sent = 0; sent < kRounds - 4;) {  // the last four batches are in flight already
      std::vector<std::size_t> envs;
      {
        const std::lock_guard lock(mutex);
        if (!to_send.empty()) envs = to_send.front(), to_send.pop_front();
      }
      if (envs.empty()) {
        std::this_thread::yield();
        continue;
      }
      const Pool::Turn turn(rig.pool, true, false);
      rig.send(envs);
      ++sent;
    }
    receiver.join();
    CHECK_EQUAL(rig.pool.in_flight(), 0U);
  }
}

CASE("recv ends at its deadline, and loses nothing by it") {
  Rig<> rig(settings(2, 1, 2), {real("delay_us", 0.0)}, 1, {real("delay_us", 3e5)});
  rig.pool.async_reset();
  CHECK(rig.recv() && rig.recv());
  rig.send({1});
  const auto start = Clock::now();
  int timeouts = 0;
  while (!rig.recv(2ms)) ++timeouts;
  CHECK(timeouts > 0);
  CHECK(Clock::now() - start < 10s);
  CHECK_EQUAL(rig.received(), std::vector<std::size_t>{1});
  CHECK_EQUAL(rig.batch_obs(0, 0), 1.0F);
}

CASE("a batch that can never be full is an error at once, unless another thread may send") {
  Rig<> rig(settings(4, 2, 2));
  CHECK_THROWS(StateError, "recv() would wait for ever", rig.recv());
  CHECK(!rig.recv(20ms, true));
  rig.pool.async_reset();
  CHECK(rig.recv() && rig.recv());
  rig.send({0});
  CHECK_THROWS(StateError, "1 are in flight", rig.recv());
  rig.send({3});
  CHECK(rig.recv());
  CHECK_EQUAL(rig.received(), (std::vector<std::size_t>{0, 3}));
}

CASE("a waiting recv is woken by another thread's send") {
  Rig<> rig(settings(2, 1, 2));
  rig.pool.async_reset();
  CHECK(rig.recv() && rig.recv());
  std::thread sender([&] {
    std::this_thread::sleep_for(20ms);
    rig.send({1});
  });
  CHECK(rig.recv(20s, true));
  sender.join();
}

CASE("calls that do not fit what is in flight are refused, and change nothing") {
  Rig<> rig(settings(4, 2, 2));
  CHECK_THROWS(ResetNeeded, "environment 0 has not been reset", rig.pool.check_sendable({0}));
  rig.pool.async_reset();
  CHECK_THROWS(StateError, "4 environments are in flight", rig.pool.async_reset());
  CHECK_THROWS(StateError, "environment 2 has an action already", rig.pool.check_sendable({2}));
  CHECK_THROWS(StateError, "4 environments are in flight", rig.step());
  CHECK_THROWS(StateError, "4 environments are in flight", rig.pool.observe(rig.full.data()));
  CHECK(rig.recv() && rig.recv());
  CHECK_THROWS(StateError, "environment 1 has an action already", rig.pool.check_sendable({1, 1}));
  rig.step();
  CHECK_EQUAL(rig.obs(3, 0), 1.0F);
  rig.send({0, 1});
  CHECK(rig.recv());
}

CASE("reset drops what is in flight") {
  Rig<> rig(settings(8, 2, 2), {real("delay_us", 2000.0)});
  for (int round = 0; round < 10; ++round) {
    rig.pool.async_reset();
    CHECK(rig.recv());
    rig.send(rig.received());
    rig.reset();
    CHECK_EQUAL(rig.pool.in_flight(), 0U);
    CHECK_THROWS(StateError, "recv() would wait for ever", rig.recv());
    for (std::size_t env = 0; env < 8; ++env) CHECK_EQUAL(rig.obs(env, 0), 0.0F);
  }
}

CASE("synchronous and asynchronous calls take turns") {
  Rig<> rig(settings(8, 4, 3), {real("delay_us", 50.0)});
  rig.reset();
  for (int round = 0; round < 50; ++round) {
    rig.step();
    rig.send({0, 2, 3, 7});
    CHECK(rig.recv());
    CHECK_EQUAL(rig.batch_obs(3, 0), static_cast<float>(2 * round + 2));
  }
  rig.step();
  CHECK_EQUAL(rig.obs(7, 0), 101.0F);
  CHECK_EQUAL(rig.obs(1, 0), 51.0F);
}

CASE("an environment that fails is told by recv; the others are still received") {
  Rig<> rig(settings(6, 2, 2), {real("delay_us", 100.0)}, 3, {integer("fail_at", 1)});
  rig.act(1);
  rig.reset();
  rig.send({0, 1, 2, 3, 4});
  int failures = 0;
  std::vector<std::size_t> all;
  while (all.size() < 4) {
    try {
      CHECK(rig.recv(20s, true));
      const auto envs = rig.received();
      all.insert(all.end(), envs.begin(), envs.end());
    } catch (const EnvError& error) {
      failures += 1;
      CHECK(std::strstr(error.what(), "environment 3 of Scripted failed: scripted failure") != nullptr);
    }
  }
  if (failures == 0) CHECK_THROWS(EnvError, "environment 3", rig.recv());
  std::sort(all.begin(), all.end());
  CHECK_EQUAL(all, (std::vector<std::size_t>{0, 1, 2, 4}));
  CHECK_EQUAL(rig.pool.in_flight(), 0U);
  CHECK_THROWS(ResetNeeded, "environment 3", rig.pool.check_sendable({3}));
  rig.reset({0, 0, 0, 1, 0, 0});
  rig.send({3, 5});
  CHECK_THROWS(EnvError, "environment 3", rig.recv(20s, true));
}

CASE("actions are still taken for the others while a failed environment waits for its reset") {
  Rig<> rig(settings(4, 1, 2), {}, 3, {integer("fail_at", 1)});
  rig.reset();
  rig.send({0, 3});
  CHECK_THROWS(EnvError, "environment 3", rig.recv(20s, true); rig.recv(20s, true));
  rig.pool.check_sendable({1});
}

CASE("actions are still taken for the others while an ended episode waits for its reset") {
  Rig<> rig(settings(4, 1, 2, RACEWAY_DISABLED), {}, 3, {integer("length", 1)});
  rig.reset();
  rig.send({3});
  CHECK(rig.recv());
  CHECK(rig.batch.terminated[0]);
  CHECK_THROWS(ResetNeeded, "environment 3", rig.pool.check_sendable({3}));
  rig.pool.check_sendable({1});
}

CASE("a failure that nobody received is not told again by the reset that heals it") {
  Rig<> rig(settings(4, 1, 2), {}, 3, {integer("fail_at", 1)});
  rig.reset();
  rig.send({3});
  CHECK(check::comes_true([&] { return rig.pool.in_flight() == 0; }));
  rig.reset();
  rig.send({1});
  CHECK(rig.recv());
}

CASE("send returns at once from slow environments, though their resets were quick") {
  Rig<> rig(settings(8, 4, 2), {real("delay_us", 1e5)});
  rig.pool.async_reset();
  CHECK(rig.recv());
  const auto start = Clock::now();
  rig.send(rig.received());
  CHECK(Clock::now() - start < 30ms);  // their steps take 200 ms together
}

CASE("close ends a recv that waits, and drops what is queued") {
  Rig<> rig(settings(8, 7, 2), {real("delay_us", 1e5)});
  rig.reset();
  rig.step();
  rig.send({0, 1, 2, 3, 4, 5, 6, 7});
  std::atomic<bool> waiting{false};
  std::thread receiver([&] {
    const Pool::Turn turn(rig.pool, false, true);
    waiting.store(true);
    CHECK_THROWS(ClosedError, "closed while recv() waited", rig.recv());
  });
  CHECK(check::comes_true([&] { return waiting.load(); }));
  const auto start = Clock::now();
  CHECK(rig.pool.close(Clock::now() + 10s));
  CHECK(Clock::now() - start < 5s);
  receiver.join();
  CHECK_EQUAL(live_envs.load(), 0);
}

CASE("pools come and go with work in flight") {
  for (int i = 0; i < 200; ++i) {
    Rig<> rig(settings(8, 1 + static_cast<std::size_t>(i) % 8, 1 + i % 4), {real("delay_us", 30.0)});
    rig.pool.async_reset();
    if (i % 2 == 0) CHECK(rig.recv(5s));
  }
  CHECK_EQUAL(live_envs.load(), 0);
}
