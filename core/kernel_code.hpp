// The kernel's code, included by one source file per kind of CPU. All of it is local to that file, and no inline
// function of another header is used unless it is always inlined: the linker keeps one copy of such a function, and it
// could be one that this CPU cannot run.
#pragma once

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#endif

#include "kernel.hpp"
#include "random.hpp"

namespace raceway {
namespace {

typedef float Floats __attribute__((vector_size(32), may_alias));
typedef std::int32_t Ints __attribute__((vector_size(32)));
typedef std::uint32_t Words __attribute__((vector_size(32)));

#define RACEWAY_INLINE [[gnu::always_inline]] inline

RACEWAY_INLINE Floats all(float x) {
  return Floats{x, x, x, x, x, x, x, x};
}
RACEWAY_INLINE Words all(std::uint32_t x) {
  return Words{x, x, x, x, x, x, x, x};
}
RACEWAY_INLINE Floats& at(float* address) {
  return *reinterpret_cast<Floats*>(address);
}
RACEWAY_INLINE Floats at(const float* address) {
  return *reinterpret_cast<const Floats*>(address);
}
RACEWAY_INLINE Words at(const std::uint32_t* address) {
  Words words;
  __builtin_memcpy(&words, address, sizeof words);
  return words;
}

RACEWAY_INLINE Floats fused(Floats a, Floats b, Floats c) {
#if defined(__AVX2__) && defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}

// What is not a number stays so, here and below: comparisons with it are false, and the CPU's instructions then give
// their second operand.
RACEWAY_INLINE Floats clamped(Floats x, float low, float high) {
#if defined(__AVX2__) && defined(__FMA__)
  return _mm256_min_ps(all(high), _mm256_max_ps(all(low), x));
#else
  x = x < low ? all(low) : x;
  return x > high ? all(high) : x;
#endif
}

RACEWAY_INLINE Floats root(Floats x) {
#if defined(__AVX2__) && defined(__FMA__)
  return _mm256_sqrt_ps(x);
#else
  for (int lane = 0; lane < 8; ++lane) x[lane] = __builtin_sqrtf(x[lane]);
  return x;
#endif
}

// Coefficients from the constant on.
template <std::size_t N>
RACEWAY_INLINE Floats polynomial(Floats x, const float (&coefficients)[N]) {
  Floats sum = all(coefficients[N - 1]);
#pragma GCC unroll 16
  for (std::size_t i = N - 1; i > 0; --i) sum = fused(sum, x, all(coefficients[i - 1]));
  return sum;
}

// x P(x²) / Q(x²), fitted to tanh up to where float32 has nothing between it and 1.
RACEWAY_INLINE Floats tanh(Floats x) {
  constexpr float kP[] = {9.999999932e-01F,  1.308317710e-01F, 3.103023594e-03F, 1.114447791e-05F,
                          -2.018479606e-08F, 5.258135965e-11F, -8.436852842e-14F};
  constexpr float kQ[] = {1.0F, 4.641650408e-01F, 2.449147060e-02F, 2.544782958e-04F};
  x = clamped(x, -9.0F, 9.0F);
  const Floats square = x * x;
  return x * polynomial(square, kP) / polynomial(square, kQ);
}

// 2^n e^r with |r| at most half of ln 2. Below -87 it is nearly nothing, and here that is as good as nothing.
RACEWAY_INLINE Floats exponential(Floats x) {
  constexpr float kRest[] = {5.000000029e-01F, 1.666657336e-01F, 4.166636350e-02F, 8.363776146e-03F, 1.394215686e-03F};
  constexpr float kRounder = 12582912.0F;  // 1.5 * 2^23: a sum with it has no room for a fraction
  x = clamped(x, -87.0F, 88.0F);
  const Floats shifted = fused(x, all(1.44269504F), all(kRounder));
  const Floats n = shifted - kRounder;
  Floats r = fused(n, all(-0.693359375F), x);
  r = fused(n, all(2.12194440e-4F), r);
  const Floats value = fused(r * r, polynomial(r, kRest), r) + 1.0F;
  const Ints power = ((Ints)shifted - (Ints)all(kRounder) + 127) << 23;
  return value * (Floats)power;
}

// Of normal numbers above zero: n ln 2 + ln(1 + f) with 1 + f from √½ to √2.
RACEWAY_INLINE Floats logarithm(Floats x) {
  constexpr float kRest[] = {3.333333126e-01F,  -2.499998119e-01F, 2.000068812e-01F,
                             -1.666915032e-01F, 1.425115402e-01F,  -1.239671498e-01F,
                             1.163469338e-01F,  -1.165984007e-01F, 7.332334763e-02F};
  constexpr std::int32_t kRootHalf = 0x3f3504f3;
  const Ints offset = (Ints)((Words)x - static_cast<std::uint32_t>(kRootHalf));
  const Ints exponent = offset >> 23;
  const Floats f = (Floats)((offset & 0x7fffff) + kRootHalf) - 1.0F;
  const Floats n = __builtin_convertvector(exponent, Floats);
  const Floats square = f * f;
  Floats sum = f * square * polynomial(f, kRest);
  sum = fused(n, all(-2.12194440e-4F), sum);
  sum = fused(square, all(-0.5F), sum) + f;
  sum = fused(n, all(0.693359375F), sum);
  return x == x ? sum : x;
}

RACEWAY_INLINE Floats activated(Floats x, Activation activation) {
  if (activation == Activation::kTanh) return tanh(x);
  if (activation == Activation::kRelu) return clamped(x, 0.0F, __builtin_inff());
  return x;
}

// Rows by panels by vectors of a panel: each number is summed by itself, over the inputs in order.
template <std::size_t Rows, std::size_t Panels, std::size_t Wide, Activation Act>
RACEWAY_INLINE void tile(const Dense& layer, std::size_t row, std::size_t vector) {
  constexpr std::size_t kVectors = Panels * Wide;
  const float* in = layer.in + row * layer.in_stride;
  const float* weights = layer.weights + vector * kLanes * layer.inputs + layer.first * Wide * kLanes;
  float* out = layer.out + row * layer.out_stride + vector * kLanes;
  Floats sums[Rows][kVectors];
#pragma GCC unroll 16
  for (std::size_t r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
    for (std::size_t v = 0; v < kVectors; ++v) {
      const float* start = layer.bias ? layer.bias + (vector + v) * kLanes : out + r * layer.out_stride + v * kLanes;
      sums[r][v] = at(start);
    }
  }
  for (std::size_t k = 0; k < layer.count; ++k) {
    Floats inputs[Rows];
#pragma GCC unroll 16
    for (std::size_t r = 0; r < Rows; ++r) inputs[r] = all(in[r * layer.in_stride + k]);
#pragma GCC unroll 16
    for (std::size_t v = 0; v < kVectors; ++v) {
      const float* panel = weights + v / Wide * kPanel * layer.inputs;
      const Floats weight = at(panel + (k * Wide + v % Wide) * kLanes);
#pragma GCC unroll 16
      for (std::size_t r = 0; r < Rows; ++r) sums[r][v] = fused(inputs[r], weight, sums[r][v]);
    }
  }
#pragma GCC unroll 16
  for (std::size_t r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
    for (std::size_t v = 0; v < kVectors; ++v) {
      at(out + r * layer.out_stride + v * kLanes) = activated(sums[r][v], Act);
    }
  }
}

// Up to four rows over all whole panels. Eight sums at once keep the multipliers busy.
template <std::size_t Rows, Activation Act>
[[gnu::noinline]] void band(const Dense& layer, std::size_t row) {
  constexpr std::size_t kPanels = Rows == 1 ? 4 : Rows == 2 ? 2 : 1;
  const std::size_t whole = layer.vectors / 2 * 2;
  std::size_t vector = 0;
  for (; vector + 2 * kPanels <= whole; vector += 2 * kPanels) tile<Rows, kPanels, 2, Act>(layer, row, vector);
  if constexpr (kPanels > 1) {
    for (; vector < whole; vector += 2) tile<Rows, 1, 2, Act>(layer, row, vector);
  }
}

// The half panel at the end, all rows at once: there are too few sums otherwise.
template <Activation Act>
[[gnu::noinline]] void last_half(const Dense& layer) {
  const std::size_t vector = layer.vectors - 1;
  switch (layer.rows) {
    case 1:
      return tile<1, 1, 1, Act>(layer, 0, vector);
    case 2:
      return tile<2, 1, 1, Act>(layer, 0, vector);
    case 3:
      return tile<3, 1, 1, Act>(layer, 0, vector);
    case 4:
      return tile<4, 1, 1, Act>(layer, 0, vector);
    case 5:
      return tile<5, 1, 1, Act>(layer, 0, vector);
    case 6:
      return tile<6, 1, 1, Act>(layer, 0, vector);
    case 7:
      return tile<7, 1, 1, Act>(layer, 0, vector);
    default:
      return tile<8, 1, 1, Act>(layer, 0, vector);
  }
}

template <Activation Act>
void dense_with(const Dense& layer) {
  std::size_t row = 0;
  if (layer.vectors > 1) {
    for (; row + 4 <= layer.rows; row += 4) band<4, Act>(layer, row);
    switch (layer.rows - row) {
      case 1:
        band<1, Act>(layer, row);
        break;
      case 2:
        band<2, Act>(layer, row);
        break;
      case 3:
        band<3, Act>(layer, row);
        break;
      default:
        break;
    }
  }
  if (layer.vectors % 2 == 1) last_half<Act>(layer);
}

void dense(const Dense& layer) {
  switch (layer.activation) {
    case Activation::kTanh:
      return dense_with<Activation::kTanh>(layer);
    case Activation::kRelu:
      return dense_with<Activation::kRelu>(layer);
    default:
      return dense_with<Activation::kNone>(layer);
  }
}

void activate(float* values, std::size_t count, Activation activation) {
  for (std::size_t i = 0; i < count; i += kLanes) at(values + i) = activated(at(values + i), activation);
}

void exponentials(float* values, std::size_t count) {
  for (std::size_t i = 0; i < count; i += kLanes) at(values + i) = exponential(at(values + i));
}

void logarithms(float* values, std::size_t count) {
  for (std::size_t i = 0; i < count; i += kLanes) at(values + i) = logarithm(at(values + i));
}

void words(std::uint32_t key_a, std::uint32_t key_b, std::uint32_t first_env, std::uint32_t step, std::uint32_t* a,
           std::uint32_t* b) {
  const Words envs = all(first_env) + Words{0, 1, 2, 3, 4, 5, 6, 7};
  const Pair<Words> drawn = threefry<Words>({all(key_a), all(key_b)}, {envs, all(step)});
  __builtin_memcpy(a, &drawn.a, sizeof drawn.a);
  __builtin_memcpy(b, &drawn.b, sizeof drawn.b);
}

RACEWAY_INLINE Floats uniforms(Words word) {
  const Floats whole = __builtin_convertvector((Ints)(word >> 9), Floats);
  return whole * 0x1p-23F + 0x1p-24F;
}

// The angle is split into quarter turns and an eighth of a turn either way.
void normals(const std::uint32_t* a, const std::uint32_t* b, float* cosines, float* sines) {
  constexpr float kSine[] = {6.283185288e+00F, -4.134166263e+01F, 8.159255354e+01F, -7.540206767e+01F};
  constexpr float kCosine[] = {1.0F, -1.973920865e+01F, 6.493931621e+01F, -8.544285212e+01F, 5.922040724e+01F};
  const Floats radius = root(logarithm(uniforms(at(a))) * -2.0F);
  const Floats turn = uniforms(at(b));
  const Ints quarter = __builtin_convertvector(turn * 4.0F + 0.5F, Ints);
  const Floats rest = turn - __builtin_convertvector(quarter, Floats) * 0.25F;
  const Floats square = rest * rest;
  const Floats sine = rest * polynomial(square, kSine), cosine = polynomial(square, kCosine);
  const Ints odd = (quarter & 1) == 1;
  const Floats x = odd ? sine : cosine, y = odd ? cosine : sine;
  const Ints left = ((quarter + 1) & 2) == 2, below = (quarter & 2) == 2;
  at(cosines) = radius * (left ? -x : x);
  at(sines) = radius * (below ? -y : y);
}

}  // namespace
}  // namespace raceway
