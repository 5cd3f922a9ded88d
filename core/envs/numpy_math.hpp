// Arithmetic as NumPy's scalars do it, so that trajectories equal Gymnasium's to the bit.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>

namespace raceway::numpy {

// x**2 on a NumPy scalar is the C library's pow, which about one time in a thousand rounds otherwise than x * x.
// The exponent is hidden from the compiler, which would turn the call into that product.
inline double squared(double x) {
  double two = 2.0;
  asm("" : "+m"(two));
  return std::pow(x, two);
}
inline float squared(float x) {
  float two = 2.0F;
  asm("" : "+m"(two));
  return std::pow(x, two);
}

// x % y for y > 0: the result has the sign of y.
inline double remainder(double x, double y) {
  double result = std::fmod(x, y);
  if (result < 0.0) result += y;
  return result;
}

// np.clip, which of contradictory bounds takes the upper one.
template <class T>
T clip(T x, T low, T high) {
  const T raised = x < low ? low : x;
  return raised > high ? high : raised;
}

// np.sum: in eight lanes, and long arrays in halves.
template <class T, class Term>
T sum(std::size_t begin, std::size_t end, Term term) {
  const std::size_t count = end - begin;
  if (count < 8) {
    T total = 0;
    for (std::size_t i = begin; i < end; ++i) total += term(i);
    return total;
  }
  if (count <= 128) {
    T lanes[8];
    for (std::size_t lane = 0; lane < 8; ++lane) lanes[lane] = term(begin + lane);
    std::size_t i = begin + 8;
    for (; i + 8 <= end; i += 8) {
      for (std::size_t lane = 0; lane < 8; ++lane) lanes[lane] += term(i + lane);
    }
    T total = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
    for (; i < end; ++i) total += term(i);
    return total;
  }
  const std::size_t half = count / 2 - count / 2 % 8;
  return sum<T>(begin, begin + half, term) + sum<T>(begin + half, end, term);
}

// np.sum(np.square(x))
template <class T>
T sum_of_squares(const T* x, std::size_t count) {
  return sum<T>(0, count, [x](std::size_t i) { return x[i] * x[i]; });
}

// np.linalg.norm of a short vector
inline double norm(const double* x, std::size_t count) {
  double total = 0.0;
  for (std::size_t i = 0; i < count; ++i) total += x[i] * x[i];
  return std::sqrt(total);
}

namespace detail {

// NumPy computes float32 sine and cosine itself: Cody-Waite reduction by multiples of pi/2, then a polynomial, fused
// multiply-adds throughout. Beyond `limit` it falls back to the C library.
struct Reduced {
  float x;
  int quadrant;
};

inline Reduced reduce(float x) {
  constexpr float kRound = 0x1.8p23F;  // adding and subtracting it rounds to the nearest integer
  const float turns = (x * (2.0F / std::numbers::pi_v<float>)+kRound) - kRound;
  float rest = std::fma(turns, -0x1.921fb0p+00F, x);
  rest = std::fma(turns, -0x1.5110b4p-22F, rest);
  rest = std::fma(turns, -0x1.846988p-48F, rest);
  return {rest, static_cast<int>(turns)};
}

inline float sine_polynomial(float x) {
  const float x2 = x * x;
  float sum = std::fma(0x1.7d3bbcp-19F, x2, -0x1.a06bbap-13F);
  sum = std::fma(sum, x2, 0x1.11119ap-07F);
  sum = std::fma(sum, x2, -0x1.555556p-03F);
  sum = std::fma(sum, x2, 0.0F);
  return std::fma(sum, x, x);
}

inline float cosine_polynomial(float x) {
  const float x2 = x * x;
  float sum = std::fma(0x1.98e616p-16F, x2, -0x1.6c06dcp-10F);
  sum = std::fma(sum, x2, 0x1.55553cp-05F);
  sum = std::fma(sum, x2, -0x1.000000p-01F);
  return std::fma(sum, x2, 0x1.000000p+00F);
}

inline float at_quadrant(Reduced reduced, int quadrant) {
  const float value = (quadrant & 1) == 0 ? sine_polynomial(reduced.x) : cosine_polynomial(reduced.x);
  return (quadrant & 2) == 0 ? value : -value;
}

}  // namespace detail

inline float sin(float x) {
  if (!(std::fabs(x) <= 117435.992F)) return std::sin(x);
  const auto reduced = detail::reduce(x);
  return detail::at_quadrant(reduced, reduced.quadrant);
}

inline float cos(float x) {
  if (!(std::fabs(x) <= 71476.0625F)) return std::cos(x);
  const auto reduced = detail::reduce(x);
  return detail::at_quadrant(reduced, reduced.quadrant + 1);
}

}  // namespace raceway::numpy
