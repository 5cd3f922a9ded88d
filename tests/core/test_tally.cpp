// What a pool and its worker processes share beside messages: windows into leases, bells of others, and the tally.
#include <unistd.h>

#include <memory>
#include <thread>
#include <vector>

#include "check.hpp"
#include "exchange.hpp"
#include "tally.hpp"

using namespace raceway;
using namespace std::chrono_literals;

namespace {

// A pool, host 0, and a worker that may write to its leases.
struct Pair {
  Pair() : fd(Shared::create(2)) {
    pool = std::make_unique<Exchange>(std::make_shared<const Shared>(fd, 0), 0);
    worker = std::make_unique<Exchange>(std::make_shared<const Shared>(fd, Shared::kAnyHost), 1);
  }
  ~Pair() { close(fd); }

  int fd;
  std::unique_ptr<Exchange> pool, worker;
};

}  // namespace

CASE("what one host has leased, another finds by its place and writes") {
  Pair pair;
  const Hold lease = pair.pool->lease(1000);
  const Bytes bytes(lease.data(), 1000);
  const auto place = pair.pool->place_of(bytes);
  CHECK(place.has_value());
  const auto window = pair.worker->window(0, *place, 1000);
  window[999] = std::byte{42};
  CHECK(lease.data()[999] == std::byte{42});
  CHECK_EQUAL(*pair.pool->place_of(bytes.subspan(10, 5)), *place + 10);
}

CASE("memory that is not leased has no place, and a window outside an arena is refused") {
  Pair pair;
  const std::byte own[8] = {};
  CHECK(!pair.pool->place_of(Bytes(own, 8)).has_value());
  const Hold others = pair.worker->lease(100);
  CHECK(!pair.pool->place_of(Bytes(others.data(), 100)).has_value());
  CHECK_THROWS(std::invalid_argument, "the hosts are 0 to 1", pair.worker->window(2, 0, 1));
  CHECK_THROWS(std::invalid_argument, "outside the arena", pair.worker->window(0, UINT64_MAX, 1));
  CHECK_THROWS(std::invalid_argument, "outside the arena", pair.worker->window(0, 0, SIZE_MAX));
  CHECK_THROWS(std::invalid_argument, "the hosts are 0 to 1", pair.pool->ring(2));
}

CASE("a bell is rung by another host") {
  Pair pair;
  const std::uint32_t seen = pair.worker->bell().now();
  std::thread ringing([&] { pair.pool->ring(1); });
  Patience patience(0ns);
  CHECK(pair.worker->bell().wait(seen, patience, Clock::now() + 10s));
  ringing.join();
}

CASE("a tally says so once the wanted number is there, and goes on saying it") {
  Tally tally;
  tally.want(5);
  CHECK(!tally.add(2));
  CHECK(!tally.add(2));
  CHECK(tally.add(1));
  CHECK(tally.add(1));
  tally.take(6);
  CHECK_EQUAL(tally.done(), 0);
  CHECK(!tally.add(4));
  tally.want(4);
  CHECK_EQUAL(tally.done(), 4);
  tally.clear();
  CHECK_EQUAL(tally.done(), 0);
}

CASE("no wake-up is lost between those who count and the one who waits") {
  constexpr int kThreads = 3, kRounds = 3000;
  Tally tally;
  Signal bell;
  std::vector<Signal> go(kThreads);
  const auto work = [&](std::size_t self) {
    Patience patience(20us);
    std::uint32_t seen = 0;
    for (int round = 0; round < kRounds; ++round) {
      while (go[self].now() == seen) go[self].wait(seen, patience);
      seen += 1;
      if (tally.add(1)) bell.raise_one();
    }
  };
  std::vector<std::thread> workers;
  for (std::size_t i = 0; i < kThreads; ++i) workers.emplace_back(work, i);
  Patience patience(20us);
  bool came = true;
  for (int round = 0; round < kRounds; ++round) {
    tally.clear();
    tally.want(kThreads);
    for (Signal& each : go) each.raise();
    while (true) {
      const std::uint32_t seen = bell.now();
      if (tally.done() == kThreads) break;
      came = bell.wait(seen, patience, Clock::now() + 20s) && came;
    }
  }
  for (auto& worker : workers) worker.join();
  CHECK(came);
}
