// Two kinds of randomness. NumPy's default generator, bit for bit: Gymnasium seeds one PCG64 stream per environment.
// And numbers that are counted, not streamed, for everything else: there is no position that timing could move.
#pragma once

#include <cstdint>
#include <span>

#include "table.h"

namespace raceway {

// 128 bits of state advance by a linear congruence; the output folds and rotates them (PCG XSL-RR 128/64).
class Random {
 public:
  explicit Random(raceway_random& storage) : storage_(storage) {}

  std::uint64_t bits64() {
    Wide state = join(storage_.state_high, storage_.state_low);
    state = state * kMultiplier + join(storage_.increment_high, storage_.increment_low);
    storage_.state_high = static_cast<std::uint64_t>(state >> 64);
    storage_.state_low = static_cast<std::uint64_t>(state);
    const std::uint64_t folded = storage_.state_high ^ storage_.state_low;
    const auto rotation = static_cast<unsigned>(storage_.state_high >> 58);
    return (folded >> rotation) | (folded << ((64 - rotation) & 63));
  }

  // Hands out the two halves of 64 bits, low half first: the other half waits in the state.
  std::uint32_t bits32() {
    if (storage_.has_half != 0) {
      storage_.has_half = 0;
      return storage_.half;
    }
    const std::uint64_t bits = bits64();
    storage_.has_half = 1;
    storage_.half = static_cast<std::uint32_t>(bits >> 32);
    return static_cast<std::uint32_t>(bits);
  }

  // Generator.random()
  double uniform() { return static_cast<double>(bits64() >> 11) * (1.0 / 9007199254740992.0); }

  // Generator.uniform(low, high)
  double uniform(double low, double high) { return low + (high - low) * uniform(); }

  // Generator.standard_normal()
  double normal();

  // Generator.integers(0, n), and so the index that Generator.choice draws: Lemire's multiplication, 32 bits.
  std::uint32_t below(std::uint32_t n) {
    if (n == 1) return 0;  // NumPy takes nothing from the stream for it
    std::uint64_t product = std::uint64_t{bits32()} * n;
    if (static_cast<std::uint32_t>(product) < n) {
      const std::uint32_t threshold = (0U - n) % n;
      while (static_cast<std::uint32_t>(product) < threshold) product = std::uint64_t{bits32()} * n;
    }
    return static_cast<std::uint32_t>(product >> 32);
  }

 private:
  __extension__ using Wide = unsigned __int128;

  static constexpr Wide kMultiplier = (Wide{0x2360ed051fc65da4} << 64) | 0x4385df649fccf645;
  static constexpr Wide join(std::uint64_t high, std::uint64_t low) { return (Wide{high} << 64) | low; }

  raceway_random& storage_;
};

// numpy.random.PCG64(seed): the seed, as 32-bit words from the lowest, stirred by a SeedSequence.
raceway_random seeded(std::span<const std::uint32_t> seed);

// Two words: a key, a counter, or what Threefry makes of them.
template <class Word>
struct Pair {
  Word a, b;
};

// Threefry-2x32 with 20 rounds (Salmon et al. 2011), as in Random123 and JAX. A word may be a vector of words. Always
// inlined: compiled for several CPUs, no copy of it may end up in code for another.
template <class Word>
[[gnu::always_inline]] constexpr Pair<Word> threefry(Pair<Word> key, Pair<Word> counter) {
  constexpr int kRotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  const Word keys[3] = {key.a, key.b, key.a ^ key.b ^ 0x1bd11bdaU};
  Word a = counter.a + keys[0], b = counter.b + keys[1];
  for (unsigned round = 0; round < 20; ++round) {
    const int rotation = kRotations[round % 8];
    a += b;
    b = ((b << rotation) | (b >> (32 - rotation))) ^ a;
    if (round % 4 == 3) {
      const unsigned turn = round / 4 + 1;
      a += keys[turn % 3];
      b += keys[(turn + 1) % 3] + turn;
    }
  }
  return {a, b};
}

// What a random number is for: numbers of different purposes have nothing to do with each other.
enum class Purpose : std::uint32_t { kActions = 1 };

// The random words of (seed, purpose, draw, environment, step).
class Counted {
 public:
  Counted(std::uint64_t seed, Purpose purpose)
      : seed_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        purpose_(static_cast<std::uint32_t>(purpose)) {}

  // Of one draw, for all environments and steps.
  Pair<std::uint32_t> key(std::uint32_t draw) const { return threefry<std::uint32_t>(seed_, {purpose_, draw}); }
  Pair<std::uint32_t> words(std::uint32_t draw, std::uint32_t env, std::uint32_t step) const {
    return threefry<std::uint32_t>(key(draw), {env, step});
  }

 private:
  Pair<std::uint32_t> seed_;
  std::uint32_t purpose_;
};

// Between 0 and 1, and never either of them.
inline float uniform(std::uint32_t word) {
  return static_cast<float>(word >> 9) * 0x1p-23F + 0x1p-24F;
}

}  // namespace raceway
