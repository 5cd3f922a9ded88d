// Ring, arena and exchange: messages between hosts, here threads on one mapping, so that the thread sanitizer sees both
// sides. Between processes it is tested from Python.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <random>
#include <set>
#include <thread>

#include "check.hpp"
#include "exchange.hpp"

using namespace raceway;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMB = std::size_t{1} << 20;
constexpr SharedSizes kSmall{std::size_t{64} << 10, 256, 64 * kMB};

std::shared_ptr<const Shared> shared_by(std::size_t hosts, SharedSizes sizes = kSmall) {
  const int fd = Shared::create(hosts, sizes);
  auto shared = std::make_shared<const Shared>(fd, Shared::kAnyHost);
  close(fd);
  return shared;
}

// The hosts of a program, all of them in this process.
struct Hosts {
  explicit Hosts(std::size_t count, SharedSizes sizes = kSmall) : shared(shared_by(count, sizes)) {
    for (std::size_t host = 0; host < count; ++host) all.push_back(std::make_unique<Exchange>(shared, host));
  }
  Exchange& operator[](std::size_t host) { return *all[host]; }

  std::shared_ptr<const Shared> shared;
  std::vector<std::unique_ptr<Exchange>> all;
};

using Blob = std::vector<std::byte>;

// Bytes that can be told from those of any other seed and size.
Blob blob(std::size_t size, unsigned seed) {
  Blob bytes(size);
  std::uint32_t state = seed * 2654435761U + static_cast<std::uint32_t>(size);
  for (std::byte& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(state >> 24);
  }
  return bytes;
}

Blob copy_of(Bytes bytes) {
  return {bytes.begin(), bytes.end()};
}

bool equal(Bytes left, Bytes right) {
  return left.size() == right.size() && std::equal(left.begin(), left.end(), right.begin());
}

struct Message {
  Blob head;
  std::vector<Blob> parts;
  bool operator==(const Message&) const = default;
};

Letter written(Exchange& from, const Message& message, std::uint32_t readers = 1) {
  const std::vector<Bytes> parts(message.parts.begin(), message.parts.end());
  return from.write(message.head, parts, readers);
}

bool send(Exchange& from, std::size_t to, const Message& message) {
  Letter letter = written(from, message);
  return from.post(to, letter);
}

std::vector<Message> received(Exchange& host) {
  std::vector<Message> messages;
  host.receive([&](Arrival& arrival) {
    Message message{copy_of(arrival.head), {}};
    for (const auto& part : arrival.parts) message.parts.push_back(copy_of(part.bytes));
    messages.push_back(std::move(message));
  });
  return messages;
}

// Keeps what arrives instead of copying it. All messages must be large ones.
std::vector<Arrival> kept(Exchange& host) {
  std::vector<Arrival> arrivals;
  host.receive([&](Arrival& arrival) { arrivals.push_back(std::move(arrival)); });
  return arrivals;
}

Message of_sizes(std::size_t head, const std::vector<std::size_t>& parts, unsigned seed) {
  Message message{blob(head, seed), {}};
  for (const std::size_t size : parts) message.parts.push_back(blob(size, ++seed));
  return message;
}

}  // namespace

CASE("what is sent arrives: any number of parts of any size, and heads too large for the ring") {
  Hosts hosts(2);
  const std::vector<Message> messages{
      of_sizes(0, {}, 1),
      of_sizes(1, {}, 2),
      of_sizes(0, {0}, 3),
      of_sizes(7, {0, 1, 0}, 4),
      of_sizes(5, {63, 64, 65}, 5),
      of_sizes(16'000, {}, 6),
      of_sizes(100, {16'384}, 7),
      of_sizes(3 * kMB, {}, 8),
      of_sizes(3 * kMB, {0, 1, 5 * kMB}, 9),
      of_sizes(10, {kMB, 0, 1}, 10),
      of_sizes(1, std::vector<std::size_t>(3000, 9), 11),
  };
  for (const Message& message : messages) {
    CHECK(!hosts[1].has_mail());
    CHECK(send(hosts[0], 1, message));
    CHECK(hosts[1].has_mail());
    const auto arrived = received(hosts[1]);
    CHECK_EQUAL(arrived.size(), 1U);
    CHECK(arrived.at(0) == message);
  }
  CHECK(received(hosts[1]).empty());
}

CASE("sizes around the one up to which a message goes through the ring") {
  Hosts hosts(2);
  bool through_ring = false, through_arena = false;
  for (std::size_t size = 16'200; size <= 16'500; ++size) {
    const Message message = of_sizes(13, {size}, static_cast<unsigned>(size));
    Letter letter = written(hosts[0], message);
    (letter.in_ring() ? through_ring : through_arena) = true;
    CHECK(hosts[0].post(1, letter));
    CHECK(received(hosts[1]) == std::vector{message});
  }
  CHECK(through_ring && through_arena);
}

CASE("parts begin on a cache line where they lie in the arena") {
  Hosts hosts(2);
  CHECK(send(hosts[0], 1, of_sizes(77, {100'000, 3, 1, 50'000}, 1)));
  for (const Arrival& arrival : kept(hosts[1])) {
    for (const auto& part : arrival.parts) CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(part.bytes.data()) % 64, 0U);
  }
}

CASE("a ring is gone around many times and keeps order and content") {
  Hosts hosts(2);
  std::mt19937 random(1);
  std::deque<Message> expected;
  for (unsigned i = 0; i < 20'000; ++i) {
    Message message = of_sizes(random() % 300, {random() % (i % 7 == 0 ? 16'000 : 500)}, i);
    Letter letter = written(hosts[0], message);
    while (!hosts[0].post(1, letter)) {
      for (const Message& arrived : received(hosts[1])) {
        CHECK(arrived == expected.front());
        expected.pop_front();
      }
    }
    expected.push_back(std::move(message));
  }
  for (const Message& arrived : received(hosts[1])) {
    CHECK(arrived == expected.front());
    expected.pop_front();
  }
  CHECK(expected.empty());
  CHECK_EQUAL(hosts[0].arena().slots(), 0U);
}

CASE("a full ring refuses, loses nothing, and rings the writer's bell when it has room") {
  Hosts hosts(2);
  const Message message = of_sizes(1000, {}, 1);
  Letter letter = written(hosts[0], message, 1000);
  std::size_t posted = 0;
  while (hosts[0].post(1, letter)) posted += 1;
  CHECK(posted > 40 && posted < 65);
  CHECK(!hosts[0].post(1, letter));
  CHECK_EQUAL(letter.left(), 1000 - posted);
  const std::uint32_t seen = hosts[0].bell().now();
  CHECK_EQUAL(received(hosts[1]).size(), posted);
  CHECK_EQUAL(hosts[0].bell().now(), seen + 1);
  CHECK(hosts[0].post(1, letter));
  CHECK_EQUAL(received(hosts[1]).size(), 1U);
  CHECK_EQUAL(hosts[0].bell().now(), seen + 1);  // nobody waited for room
}

CASE("a writer that sleeps until there is room is always woken") {
  Hosts hosts(2);
  constexpr unsigned kMessages = 10'000;
  std::thread reader([&] {
    Patience patience(0ns);
    for (unsigned arrived = 0; arrived < kMessages;) {
      const std::uint32_t seen = hosts[1].bell().now();
      const auto before = arrived;
      hosts[1].receive([&](Arrival& arrival) {
        CHECK(equal(arrival.head, blob(2000 + arrived % 100, arrived)));
        ++arrived;
      });
      if (arrived == before) hosts[1].bell().wait(seen, patience);
    }
  });
  Patience patience(0ns);
  for (unsigned i = 0; i < kMessages; ++i) {
    Letter letter = written(hosts[0], {blob(2000 + i % 100, i), {}});
    while (true) {
      const std::uint32_t seen = hosts[0].bell().now();
      if (hosts[0].post(1, letter)) break;
      hosts[0].bell().wait(seen, patience);
    }
  }
  reader.join();
}

CASE("threads of several hosts post small and large messages to one that receives: each arrives once, in order") {
  Hosts hosts(3);
  constexpr unsigned kThreads = 4, kEach = 1500;
  std::vector<std::thread> writers;
  for (unsigned id = 0; id < kThreads; ++id) {
    writers.emplace_back([&hosts, id] {
      Exchange& self = hosts[1 + id % 2];
      Patience patience(20us);
      for (unsigned i = 0; i < kEach; ++i) {
        Message message{Blob(8), {blob(i % 10 == 0 ? 40'000 : i % 600, id * kEach + i)}};
        std::memcpy(message.head.data(), &id, 4);
        std::memcpy(message.head.data() + 4, &i, 4);
        Letter letter = written(self, message);
        while (true) {
          const std::uint32_t seen = self.bell().now();
          if (self.post(0, letter)) break;
          self.bell().wait(seen, patience);
        }
      }
    });
  }
  std::vector<unsigned> next(kThreads, 0);
  Patience patience(20us);
  for (unsigned arrived = 0; arrived < kThreads * kEach;) {
    const std::uint32_t seen = hosts[0].bell().now();
    const auto messages = received(hosts[0]);
    for (const Message& message : messages) {
      unsigned id = 0, i = 0;
      std::memcpy(&id, message.head.data(), 4);
      std::memcpy(&i, message.head.data() + 4, 4);
      CHECK_EQUAL(i, next.at(id)++);
      CHECK(message.parts.at(0) == blob(i % 10 == 0 ? 40'000 : i % 600, id * kEach + i));
    }
    arrived += static_cast<unsigned>(messages.size());
    if (messages.empty()) hosts[0].bell().wait(seen, patience);
  }
  for (auto& writer : writers) writer.join();
  for (unsigned host : {1U, 2U}) CHECK(hosts[host].arena().slots() <= 256);
}

CASE("arrivals are let go in other threads while the writer goes on, and none changes while it is held") {
  Hosts hosts(2);
  constexpr unsigned kMessages = 2000;
  std::mutex mutex;
  std::deque<std::pair<unsigned, Arrival>> held;
  std::atomic<bool> done{false};
  std::vector<std::thread> keepers;
  for (int i = 0; i < 3; ++i) {
    keepers.emplace_back([&] {
      while (true) {
        std::pair<unsigned, Arrival> mine;
        {
          const std::lock_guard lock(mutex);
          if (held.empty() && done.load()) return;
          if (!held.empty()) {
            mine = std::move(held.front());
            held.pop_front();
          }
        }
        if (mine.second.hold) {
          CHECK(equal(mine.second.parts.at(0).bytes, blob(20'000, mine.first)));
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  for (unsigned i = 0; i < kMessages; ++i) {
    CHECK(send(hosts[0], 1, {{}, {blob(20'000, i)}}));
    for (Arrival& arrival : kept(hosts[1])) {
      const std::lock_guard lock(mutex);
      held.emplace_back(i, std::move(arrival));
    }
    while (true) {
      const std::lock_guard lock(mutex);
      if (held.size() < 20) break;
    }
  }
  done.store(true);
  for (auto& keeper : keepers) keeper.join();
  CHECK(hosts[0].arena().slots() < 40);
}

CASE("ten thousand large messages use two slots") {
  Hosts hosts(2);
  const Message message = of_sizes(10, {40'000}, 1);
  std::vector<Arrival> last;
  for (int i = 0; i < 10'000; ++i) {
    CHECK(send(hosts[0], 1, message));
    last = kept(hosts[1]);
  }
  CHECK_EQUAL(hosts[0].arena().slots(), 2U);
  CHECK(equal(last.at(0).parts.at(0).bytes, message.parts[0]));
}

CASE("messages of about one size share slots, and one much smaller does not take a large one") {
  Hosts hosts(2);
  for (std::size_t i = 0; i < 300; ++i) {
    CHECK(send(hosts[0], 1, {Blob(i % 50), {Blob(kMB + i * 37 % 1000)}}));
    kept(hosts[1]);
  }
  CHECK_EQUAL(hosts[0].arena().slots(), 1U);
  CHECK(send(hosts[0], 1, {{}, {Blob(kMB / 4)}}));
  CHECK_EQUAL(hosts[0].arena().slots(), 2U);
}

CASE("a message to eight readers is written once") {
  Hosts hosts(9);
  const Message message = of_sizes(10, {kMB / 4, 5}, 1);
  for (int round = 0; round < 50; ++round) {
    Letter letter = written(hosts[0], message, 8);
    for (std::size_t to = 1; to <= 8; ++to) CHECK(hosts[0].post(to, letter));
    CHECK_THROWS(std::invalid_argument, "all the readers", hosts[0].post(1, letter));
    std::set<const void*> places;
    std::vector<Arrival> all;
    for (std::size_t to = 1; to <= 8; ++to) {
      for (Arrival& arrival : kept(hosts[to])) {
        places.insert(arrival.parts.at(0).bytes.data());
        CHECK(equal(arrival.parts.at(0).bytes, message.parts[0]));
        all.push_back(std::move(arrival));
      }
    }
    CHECK_EQUAL(all.size(), 8U);
    CHECK_EQUAL(places.size(), 1U);
  }
  CHECK_EQUAL(hosts[0].arena().slots(), 1U);
}

CASE("parts in a lease are not copied, also from its middle, and the lease lives as long as any reader") {
  Hosts hosts(3);
  const Blob content = blob(3 * kMB, 1);
  for (int round = 0; round < 10; ++round) {
    Hold lease = hosts[0].lease(content.size());
    std::memcpy(lease.data(), content.data(), content.size());
    const Bytes whole(lease.data(), content.size());
    const std::vector<Bytes> parts{whole.subspan(0, 100), whole.subspan(kMB, kMB), content};
    Letter letter = hosts[0].write({}, std::span(parts).first(2), 2);
    for (const std::size_t to : {1U, 2U}) CHECK(hosts[0].post(to, letter));
    std::vector<Arrival> first = kept(hosts[1]), second = kept(hosts[2]);
    for (const auto* arrivals : {&first, &second}) {
      CHECK_EQUAL(arrivals->at(0).parts.at(0).bytes.data(), parts[0].data());
      CHECK_EQUAL(arrivals->at(0).parts.at(1).bytes.data(), parts[1].data());
    }
    first.clear();
    lease = Hold();
    Hold other = hosts[0].lease(content.size());
    CHECK(other.data() != whole.data());
    CHECK(equal(second.at(0).parts.at(1).bytes, Bytes(content).subspan(kMB, kMB)));
  }
  CHECK_EQUAL(hosts[0].arena().slots(), 2U);
}

CASE("a lease is aligned to a cache line and may be empty") {
  Hosts hosts(1);
  std::vector<Hold> leases;
  for (const std::size_t size : {0U, 1U, 100U, 70'000U, 5'000'000U}) {
    leases.push_back(hosts[0].lease(size));
    CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(leases.back().data()) % 64, 0U);
    std::memset(leases.back().data(), 1, size);
  }
}

CASE("letters that are dropped, or posted to fewer than they were written for, give their slots back") {
  Hosts hosts(3);
  for (int i = 0; i < 100; ++i) {
    const Letter dropped = written(hosts[0], {{}, {Blob(kMB)}}, 2);
    Letter posted = written(hosts[0], {{}, {Blob(kMB)}}, 2);
    CHECK(hosts[0].post(1, posted));
    kept(hosts[1]);
  }
  CHECK_EQUAL(hosts[0].arena().slots(), 2U);
}

CASE("an arena much smaller than all that ever went through it, in sizes that grow and vary wildly, never runs out") {
  Hosts hosts(2);
  std::mt19937 random(3);
  for (std::size_t size = 20'000; size < 30 * kMB; size = size * 9 / 8) {
    CHECK(send(hosts[0], 1, {{}, {Blob(size)}}));
    kept(hosts[1]);
  }
  std::deque<Arrival> held;
  for (int i = 0; i < 300; ++i) {
    const auto size = static_cast<std::size_t>(std::exp2(15 + static_cast<double>(random() % 800) / 100));
    CHECK(send(hosts[0], 1, {{}, {Blob(size)}}));
    for (Arrival& arrival : kept(hosts[1])) held.push_back(std::move(arrival));
    while (held.size() > random() % 4) held.pop_front();
  }
  CHECK(hosts[0].arena().extent() <= kSmall.arena);
}

CASE("memory that nobody has had use for lately goes back to the system, and what is in use stays") {
  const int fd = Shared::create(1, {kSmall.ring, 256, 4096 * kMB});
  const auto megabytes = [&] {
    struct stat status{};
    fstat(fd, &status);
    return static_cast<std::size_t>(status.st_blocks) * 512 / kMB;
  };
  Exchange host(std::make_shared<const Shared>(fd, 0), 0);
  const Hold held = host.lease(48 * kMB);
  std::memset(held.data(), 5, 48 * kMB);
  for (std::size_t size = 64; size <= 112; size += 8) host.lease(size * kMB);  // none fits the next
  CHECK(megabytes() > 600);
  for (int i = 0; i < 300; ++i) host.lease(kMB);
  CHECK(megabytes() > 600);
  host.lease(128 * kMB);
  CHECK(megabytes() < 200);
  CHECK_EQUAL(host.arena().slots(), 3U);
  CHECK(std::all_of(held.data(), held.data() + 48 * kMB, [](std::byte byte) { return byte == std::byte{5}; }));
  close(fd);
}

CASE("an arena that is held to its end says so, and works again when something was let go") {
  Hosts hosts(2);
  std::vector<Hold> leases;
  const auto fill = [&] {
    while (true) leases.push_back(hosts[0].lease(4 * kMB));
  };
  CHECK_THROWS(std::runtime_error, "Let go of arrays", fill());
  CHECK_EQUAL(leases.size(), 16U);
  CHECK_THROWS(std::runtime_error, "64 MB in 16 messages", hosts[0].lease(kMB));
  leases.erase(leases.begin() + 3, leases.begin() + 6);  // three neighbours
  CHECK(send(hosts[0], 1, of_sizes(1, {11 * kMB}, 1)));
  CHECK_EQUAL(received(hosts[1]).size(), 1U);
  leases.clear();
  for (int i = 0; i < 300; ++i) CHECK(bool(hosts[0].lease(20'000)));
}

CASE("more slots than the table has are refused") {
  Hosts hosts(1);
  std::vector<Hold> leases;
  for (int i = 0; i < 256; ++i) leases.push_back(hosts[0].lease(1));
  CHECK_THROWS(std::runtime_error, "256 messages are still held", hosts[0].lease(1));
  leases.pop_back();
  CHECK(bool(hosts[0].lease(1)));
}

CASE("a host that takes up the place of a killed one leaves alone what others still hold") {
  Hosts hosts(2);
  const Message message = of_sizes(3, {kMB}, 1);
  CHECK(send(hosts[0], 1, message));
  CHECK(send(hosts[0], 1, message));
  auto held = kept(hosts[1]);
  CHECK(send(hosts[0], 1, message));
  Exchange successor(hosts.shared, 0);
  for (unsigned i = 0; i < 10; ++i) CHECK(send(successor, 1, of_sizes(3, {kMB}, 2 + i)));
  const auto arrived = received(hosts[1]);
  CHECK_EQUAL(arrived.size(), 11U);
  CHECK(arrived.at(0) == message && arrived.at(10) == of_sizes(3, {kMB}, 11));
  for (const Arrival& arrival : held) CHECK(equal(arrival.parts.at(0).bytes, message.parts[0]));
  held.clear();  // the killed one's slots come back to nobody
  CHECK(bool(successor.lease(kMB)));
}

CASE("a host may write to itself") {
  Hosts hosts(1);
  const Message small = of_sizes(3, {10}, 1), large = of_sizes(3, {kMB}, 1);
  CHECK(send(hosts[0], 0, small) && send(hosts[0], 0, large));
  CHECK(received(hosts[0]) == (std::vector{small, large}));
}

CASE("all that was sent is counted, per destination") {
  Hosts hosts(3);
  CHECK(send(hosts[0], 1, of_sizes(3, {10}, 1)));
  CHECK(send(hosts[0], 2, of_sizes(3, {kMB, 7}, 1)));
  CHECK(send(hosts[0], 2, of_sizes(5, {}, 1)));
  const auto sent = hosts[0].sent();
  CHECK_EQUAL(sent.at(0).messages, 0U);
  CHECK_EQUAL(sent.at(1).messages, 1U);
  CHECK_EQUAL(sent.at(1).bytes, 13U);
  CHECK_EQUAL(sent.at(2).messages, 2U);
  CHECK_EQUAL(sent.at(2).bytes, kMB + 15);
}

CASE("abort is seen by all, and wakes who waits") {
  Hosts hosts(3);
  CHECK(!hosts[2].aborted());
  Patience patience(0ns);
  const std::uint32_t seen = hosts[2].bell().now();
  std::thread other([&] { hosts[1].abort(); });
  CHECK(hosts[2].bell().wait(seen, patience, Clock::now() + 10s));
  other.join();
  for (std::size_t host = 0; host < 3; ++host) CHECK(hosts[host].aborted());
}

CASE("wrong arguments are refused") {
  Hosts hosts(2);
  Letter letter = written(hosts[0], of_sizes(1, {}, 1));
  CHECK_THROWS(std::invalid_argument, "the hosts are 0 to 1", hosts[0].post(2, letter));
  CHECK_THROWS(std::invalid_argument, "another exchange", hosts[1].post(0, letter));
  CHECK_THROWS(std::invalid_argument, "readers=0", hosts[0].write({}, {}, 0));
  CHECK_THROWS(std::invalid_argument, "hosts=0", Shared::create(0));
  const int fd = Shared::create(2, kSmall);
  CHECK_THROWS(std::invalid_argument, "host=2", Shared(fd, 2));
  close(fd);
}

CASE("what is no shared memory of a program is not mapped") {
  CHECK_THROWS(std::system_error, "no shared memory", Shared(-1, 0));
  const int fd = memfd_create("other", MFD_CLOEXEC);
  CHECK_THROWS(std::system_error, "no shared memory", Shared(fd, 0));
  CHECK_EQUAL(ftruncate(fd, 1 << 20), 0);
  CHECK_THROWS(std::runtime_error, "no shared memory", Shared(fd, 0));
  close(fd);
}

CASE("garbage in a ring is an error, not a crash") {
  for (std::size_t at = 0; at < 100; at += 4) {
    Hosts hosts(2);
    CHECK(send(hosts[0], 1, of_sizes(3, {10}, 1)));
    std::memset(hosts.shared->ring_data(0, 1) + at, 0xee, 4);
    try {
      received(hosts[1]);
    } catch (const std::runtime_error& error) {
      CHECK(std::strstr(error.what(), "garbage") != nullptr);
    }
  }
}

CASE("one reads the others' arenas and cannot write them; the ranges are there without their pages") {
  const int fd = Shared::create(65);
  {
    Exchange first(std::make_shared<const Shared>(fd, 0), 0);
    const auto mapping = std::make_shared<const Shared>(fd, 64);
    Exchange last(mapping, 64);
    const Message message = of_sizes(3, {3 * kMB}, 1);
    CHECK(send(first, 64, message) && send(last, 0, message));
    CHECK(received(last) == std::vector{message});
    CHECK(received(first) == std::vector{message});
    unsigned char there = 0;
    CHECK_EQUAL(mincore(mapping->arena(30), 1, &there), 0);
    CHECK_EQUAL(there & 1, 0);
  }
  close(fd);
}
