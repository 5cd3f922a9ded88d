// The expected numbers are NumPy 2.4's: numpy.random.PCG64(seed) and numpy.random.Generator over it. Those of Threefry
// are the known answers that Random123 publishes.
#include <array>
#include <vector>

#include "check.hpp"
#include "random.hpp"

using namespace raceway;

namespace {

struct Expected {
  std::vector<std::uint32_t> seed;  // 32-bit words, lowest first
  std::array<std::uint64_t, 2> state, increment;
  std::array<std::uint64_t, 3> bits;
};

const std::vector<Expected> kExpected{
    {{0},
     {0x1aa1b5345996452d, 0x09585eb7a69561e3},
     {0x418ddadb3af71a82, 0x588133bc447873a9},
     {0xa30febcfd9c2825f, 0x4510bdf882d9d721, 0x0a7d3da94ecde8b8}},
    {{1},
     {0x9c5b484bfedb756c, 0x2a6e7d6f320fbc7e},
     {0x922af2da2645f895, 0xa19857b95740937b},
     {0x8306bdf37922e4ff, 0xf35196bbc152a866, 0x24e7a4f608ec18cd}},
    {{42},
     {0xcea44f6798798f2a, 0xacbc7c9d68860ac8},
     {0xfa505436c9a8416e, 0x66caf2e28d25abff},
     {0xc621fbcd16d92688, 0x705a5661a791ffc1, 0xdbcd12c26eda1624}},
    {{0xffffffff},
     {0x4c233832246aa48c, 0xc57a3ce19c86ba9a},
     {0xda9580daf0fe872c, 0xad12d969e7b701fb},
     {0x407f5fa930d8fd9f, 0x3814b22eb9684802, 0x498b7dcee8d8dc95}},
    {{0, 1},  // 2**32
     {0x24d060cf1520dbdd, 0x21bbf7fbff1ac5d4},
     {0x77ff3ed86c5c5633, 0x7b62eea7340ca9c7},
     {0xe3c5ebe285ac1625, 0x8ea09968fe31dbcc, 0xcd084ff84d8de9be}},
    {{0, 0x80000000},  // 2**63
     {0x19f38fac928ef115, 0xada495ade18f7415},
     {0x71efe86c260ef309, 0x545d80ba006e813b},
     {0xcfb443e389167cfd, 0x98b11eb7647f71b8, 0xde463a1436212dfd}},
    {{0x76543210, 0xfedcba98, 0x89abcdef, 0x01234567},  // 128 bits
     {0x935e799dc5f88cd3, 0x9411b67cd2444de6},
     {0xe9f30dece5b7d500, 0x9eba094ae0d3c1bb},
     {0x6b518b4ce04f0a10, 0xb77c87de0b659ab2, 0xd7f794afe9cfe6f9}},
    {{0x3039, 0, 0, 0, 0, 0, 0x100},  // 2**200 + 12345, more words than the pool holds
     {0x219082a9dba584e6, 0x9548428ef3189fb8},
     {0xc2a81dce3acdb3ca, 0x8cb56a80506ed507},
     {0x76ecc5d56e7ecfe6, 0x8c7e605a14614d97, 0x95b36fbafa2ee21e}},
};

raceway_random seeded_by(std::uint32_t seed) {
  return seeded({&seed, 1});
}

// Folds many numbers into one, so that a long stream is compared by one constant.
std::uint64_t fold(std::uint64_t sum, std::uint64_t value) {
  return sum * 0x100000001b3 ^ value;
}

}  // namespace

CASE("a seed of any length gives NumPy's state and increment") {
  for (const Expected& expected : kExpected) {
    const raceway_random random = seeded(expected.seed);
    CHECK_EQUAL(random.state_high, expected.state[0]);
    CHECK_EQUAL(random.state_low, expected.state[1]);
    CHECK_EQUAL(random.increment_high, expected.increment[0]);
    CHECK_EQUAL(random.increment_low, expected.increment[1]);
    CHECK_EQUAL(random.has_half, 0U);
  }
}

CASE("bits64 is PCG64.random_raw") {
  for (const Expected& expected : kExpected) {
    raceway_random storage = seeded(expected.seed);
    for (const std::uint64_t bits : expected.bits) CHECK_EQUAL(Random(storage).bits64(), bits);
  }
  raceway_random storage = seeded_by(2024);
  std::uint64_t sum = 0;
  for (int i = 0; i < 100'000; ++i) sum = fold(sum, Random(storage).bits64());
  CHECK_EQUAL(sum, 0xcace12f6a6da4657U);
}

CASE("leading zero words change nothing up to the size of NumPy's pool") {
  const std::vector<std::uint32_t> padded{42, 0, 0, 0};
  raceway_random storage = seeded(padded);
  CHECK_EQUAL(Random(storage).bits64(), 0xc621fbcd16d92688U);
  raceway_random empty = seeded({}), zero = seeded_by(0);
  CHECK_EQUAL(Random(empty).bits64(), Random(zero).bits64());
}

CASE("uniform is Generator.random and Generator.uniform") {
  raceway_random storage = seeded_by(7);
  Random random(storage);
  CHECK_EQUAL(random.uniform(), 0x1.400c8353e3ca9p-1);
  CHECK_EQUAL(random.uniform(), 0x1.cb5f9b795e4cdp-1);
  CHECK_EQUAL(random.uniform(), 0x1.8d26acbf2815fp-1);
  CHECK_EQUAL(random.uniform(-0.05, 0.05), -0x1.c238754ddd58dp-6);
}

CASE("below is Generator.integers, and leaves the generator where NumPy does") {
  struct Drawn {
    std::uint32_t n;
    std::vector<std::uint32_t> values;
    double next;  // random() afterwards
  };
  const std::vector<Drawn> all{
      {2, {0, 0, 1, 0, 1, 1, 1, 0}, 0x1.2ef3defbe24f8p-3},
      {3, {0, 0, 2, 1, 1, 1, 2, 0}, 0x1.2ef3defbe24f8p-3},
      {4, {0, 0, 3, 1, 2, 2, 2, 0}, 0x1.2ef3defbe24f8p-3},
      {13, {1, 1, 10, 6, 7, 7, 9, 0}, 0x1.2ef3defbe24f8p-3},
      {1000, {133, 128, 797, 499, 590, 601, 712, 28}, 0x1.2ef3defbe24f8p-3},
      // About half of all draws are rejected here.
      {2147483649,
       {1267085886, 1291707887, 1042610374, 317668847, 151227035, 1165533627, 2036519846, 1335484846},
       0x1.79d9555b792c8p-2},
      {4294967295,
       {574671949, 552204815, 3423435366, 2144382089, 2534171771, 2583415773, 3058756562, 123218351},
       0x1.2ef3defbe24f8p-3},
  };
  for (const Drawn& drawn : all) {
    raceway_random storage = seeded_by(11);
    Random random(storage);
    for (const std::uint32_t value : drawn.values) CHECK_EQUAL(random.below(drawn.n), value);
    CHECK_EQUAL(random.uniform(), drawn.next);
  }
  raceway_random storage = seeded_by(3);
  std::uint64_t sum = 0;
  for (int i = 0; i < 20'000; ++i) sum = fold(sum, Random(storage).below(3'000'000'000));
  CHECK_EQUAL(sum, 0x1a17e0ae998e0701U);
}

CASE("a choice of one takes nothing from the stream, as in NumPy") {
  raceway_random storage = seeded_by(11);
  Random random(storage);
  CHECK_EQUAL(random.below(1), 0U);
  CHECK_EQUAL(random.uniform(), 0x1.074fd08112064p-3);
}

CASE("64-bit draws pass by the buffered half, which waits for the next 32-bit draw") {
  raceway_random storage = seeded_by(5);
  Random random(storage);
  CHECK_EQUAL(random.below(13), 8U);
  CHECK_EQUAL(storage.has_half, 1U);
  CHECK_EQUAL(random.uniform(), 0x1.9daa6a4a0b993p-1);
  CHECK_EQUAL(random.below(13), 10U);
  CHECK_EQUAL(storage.has_half, 0U);
  CHECK_EQUAL(random.below(4), 1U);
  CHECK_EQUAL(random.uniform(), 0x1.24a91df2855c0p-2);
  CHECK_EQUAL(random.uniform(), 0x1.b9cce15f58420p-5);
  CHECK_EQUAL(random.below(3), 1U);
  CHECK_EQUAL(random.below(100), 27U);
  CHECK_EQUAL(storage.has_half, 1U);
  CHECK_EQUAL(storage.half, 1646556805U);
}

CASE("a copy of the storage goes on as the original does") {
  raceway_random storage = seeded_by(5);
  Random(storage).bits32();
  raceway_random copy = storage;
  for (int i = 0; i < 100; ++i) {
    CHECK_EQUAL(Random(copy).bits32(), Random(storage).bits32());
    CHECK_EQUAL(Random(copy).bits64(), Random(storage).bits64());
  }
}

CASE("threefry gives the known answers") {
  const auto check = [](Pair<std::uint32_t> key, Pair<std::uint32_t> counter, Pair<std::uint32_t> expected) {
    const auto words = threefry<std::uint32_t>(key, counter);
    CHECK_EQUAL(words.a, expected.a);
    CHECK_EQUAL(words.b, expected.b);
  };
  check({0, 0}, {0, 0}, {0x6b200159, 0x99ba4efe});
  check({0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}, {0x1cb996fc, 0xbb002be7});
  check({0x13198a2e, 0x03707344}, {0x243f6a88, 0x85a308d3}, {0xc4923a9c, 0x483df7a0});
}

CASE("counted words take the seed's halves as a key, then purpose and draw, then environment and step") {
  const std::uint64_t seed = 0x0370734413198a2e;
  const auto key = threefry<std::uint32_t>({0x13198a2e, 0x03707344}, {1, 5});
  const auto expected = threefry<std::uint32_t>(key, {7, 11});
  const auto words = Counted(seed, Purpose::kActions).words(5, 7, 11);
  CHECK_EQUAL(words.a, expected.a);
  CHECK_EQUAL(words.b, expected.b);
}

CASE("a uniform number is never 0 or 1, and has the middle of each of its 2^23 places") {
  CHECK_EQUAL(uniform(0), 0x1p-24F);
  CHECK_EQUAL(uniform(511), 0x1p-24F);
  CHECK_EQUAL(uniform(512), 0x1.8p-23F);
  CHECK_EQUAL(uniform(0xffffffff), 1.0F - 0x1p-24F);
}

CASE("counted numbers are spread evenly") {
  const Counted counted(3, Purpose::kActions);
  std::array<int, 16> bins{};
  for (std::uint32_t env = 0; env < 100; ++env) {
    for (std::uint32_t step = 0; step < 1000; ++step) {
      bins[static_cast<std::size_t>(uniform(counted.words(0, env, step).a) * 16)] += 1;
    }
  }
  for (const int count : bins) CHECK(count > 5900 && count < 6600);  // 6250, and four deviations of 77 either way
}
