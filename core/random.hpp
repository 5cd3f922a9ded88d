// NumPy's default generator, bit for bit: Gymnasium seeds one PCG64 stream per environment.
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

}  // namespace raceway
