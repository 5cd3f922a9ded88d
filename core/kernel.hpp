// The arithmetic of small networks, eight numbers at a time. It is compiled for several kinds of CPU, and the best is
// chosen when it is first asked for. What one row gives does not depend on the rows that are computed with it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace raceway {

inline constexpr std::size_t kLanes = 8;
// As many rows as are passed through a network together.
inline constexpr std::size_t kMostRows = 8;
// Weights lie in panels of so many outputs: [panel][input][output]. The last one may be half as wide.
inline constexpr std::size_t kPanel = 2 * kLanes;

enum class Activation : std::uint8_t { kNone, kTanh, kRelu };

// out = activation(start + in * weights), or a part of it: inputs first to first + count only, on top of what `out`
// holds if `bias` is null. Rows of `in` and `out` are strides apart; `out` is aligned to 32 bytes.
struct Dense {
  const float* in;  // row 0 of the part's first input
  std::size_t in_stride;
  std::size_t first, count;
  const float* weights;
  std::size_t inputs;  // of the whole layer
  const float* bias;
  float* out;
  std::size_t out_stride;
  std::size_t vectors;  // eights of outputs
  std::size_t rows;
  Activation activation;
};

struct Kernel {
  const char* name;
  void (*dense)(const Dense&);
  // In place, `count` a multiple of eight, aligned to 32 bytes.
  void (*activate)(float* values, std::size_t count, Activation activation);
  void (*exponentials)(float* values, std::size_t count);
  void (*logarithms)(float* values, std::size_t count);
  // Threefry words of eight environments from `first_env` on, in one step.
  void (*words)(std::uint32_t key_a, std::uint32_t key_b, std::uint32_t first_env, std::uint32_t step, std::uint32_t* a,
                std::uint32_t* b);
  // Eight pairs of normal numbers from pairs of words (Box and Muller 1958).
  void (*normals)(const std::uint32_t* a, const std::uint32_t* b, float* cosines, float* sines);
};

extern const Kernel kGenericKernel;
extern const Kernel kAvx2Kernel;  // empty if it was not compiled for such CPUs
const Kernel* avx2_kernel();      // null where it cannot run
const Kernel& best_kernel();

}  // namespace raceway
