#include "random.hpp"

#include <numpy/random/bitgen.h>

#include <array>

// Of the library that NumPy ships for this: its tables are then ours too.
extern "C" double random_standard_normal(bitgen_t* generator);

namespace raceway {
namespace {

// NumPy's SeedSequence with its pool of four words.
class SeedSequence {
 public:
  explicit SeedSequence(std::span<const std::uint32_t> entropy) {
    for (std::size_t i = 0; i < pool_.size(); ++i) pool_[i] = hash(i < entropy.size() ? entropy[i] : 0);
    for (std::size_t source = 0; source < pool_.size(); ++source) {
      for (std::size_t target = 0; target < pool_.size(); ++target) {
        if (source != target) pool_[target] = mix(pool_[target], hash(pool_[source]));
      }
    }
    for (std::size_t source = pool_.size(); source < entropy.size(); ++source) {
      for (std::uint32_t& target : pool_) target = mix(target, hash(entropy[source]));
    }
  }

  std::array<std::uint64_t, 4> generate() const {
    std::array<std::uint64_t, 4> words{};
    std::uint32_t constant = 0x8b51f9dd;
    for (std::size_t i = 0; i < 8; ++i) {
      std::uint32_t value = pool_[i % pool_.size()] ^ constant;
      constant *= 0x58f38ded;
      value *= constant;
      value ^= value >> 16;
      words[i / 2] |= std::uint64_t{value} << (32 * (i % 2));
    }
    return words;
  }

 private:
  std::uint32_t hash(std::uint32_t value) {
    value ^= constant_;
    constant_ *= 0x931e8875;
    value *= constant_;
    return value ^ (value >> 16);
  }

  static std::uint32_t mix(std::uint32_t x, std::uint32_t y) {
    const std::uint32_t mixed = 0xca01f9dd * x - 0x4973f715 * y;
    return mixed ^ (mixed >> 16);
  }

  std::uint32_t constant_ = 0x43b0d7e5;
  std::array<std::uint32_t, 4> pool_{};
};

__extension__ using Wide = unsigned __int128;

void set_state(raceway_random& random, Wide state) {
  random.state_high = static_cast<std::uint64_t>(state >> 64);
  random.state_low = static_cast<std::uint64_t>(state);
}

}  // namespace

double Random::normal() {
  bitgen_t generator{
      this,
      [](void* state) { return static_cast<Random*>(state)->bits64(); },
      [](void* state) { return static_cast<Random*>(state)->bits32(); },
      [](void* state) { return static_cast<Random*>(state)->uniform(); },
      [](void* state) { return static_cast<Random*>(state)->bits64(); },
  };
  return random_standard_normal(&generator);
}

raceway_random seeded(std::span<const std::uint32_t> seed) {
  const auto words = SeedSequence(seed).generate();
  const Wide increment = (((Wide{words[2]} << 64) | words[3]) << 1) | 1;
  raceway_random storage{};
  storage.increment_high = static_cast<std::uint64_t>(increment >> 64);
  storage.increment_low = static_cast<std::uint64_t>(increment);
  // PCG's own seeding: one step from zero gives the increment, then the seed is added and stirred by another step.
  set_state(storage, increment + ((Wide{words[0]} << 64) | words[1]));
  Random(storage).bits64();
  return storage;
}

}  // namespace raceway
