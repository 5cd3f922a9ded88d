// Actions: how often each is drawn, how likely it is said to be, and which numbers it is made from.
#include <array>
#include <cmath>

#include "check.hpp"
#include "small_policy.hpp"

using namespace raceway;
using namespace raceway::test;

CASE("the kernels' words are the counted ones") {
  const Counted counted(0x123456789abcdef0, Purpose::kActions);
  for (const Kernel* kernel : kernels()) {
    std::array<std::uint32_t, kLanes> a{}, b{};
    kernel->words(counted.key(3).a, counted.key(3).b, 0xfffffffc, 17, a.data(), b.data());
    for (std::uint32_t i = 0; i < kLanes; ++i) {
      CHECK_EQUAL(a[i], counted.words(3, 0xfffffffc + i, 17).a);
      CHECK_EQUAL(b[i], counted.words(3, 0xfffffffc + i, 17).b);
    }
  }
}

CASE("normal numbers are those of Box and Muller, and normal") {
  const Counted counted(5, Purpose::kActions);
  for (const Kernel* kernel : kernels()) {
    Aligned<float> cosines(kLanes), sines(kLanes);
    double sum = 0.0, squares = 0.0, fourth = 0.0;
    const int draws = 20'000;
    for (std::uint32_t step = 0; step < draws; ++step) {
      std::array<std::uint32_t, kLanes> a{}, b{};
      kernel->words(counted.key(0).a, counted.key(0).b, 0, step, a.data(), b.data());
      kernel->normals(a.data(), b.data(), cosines.data(), sines.data());
      for (std::size_t i = 0; i < kLanes; ++i) {
        const double radius = std::sqrt(-2.0 * std::log(static_cast<double>(uniform(a[i]))));
        const double angle = 2.0 * M_PI * static_cast<double>(uniform(b[i]));
        const auto x = static_cast<double>(cosines.data()[i]), y = static_cast<double>(sines.data()[i]);
        CHECK(std::abs(x - radius * std::cos(angle)) < 2e-6);
        CHECK(std::abs(y - radius * std::sin(angle)) < 2e-6);
        sum += x + y;
        squares += x * x + y * y;
        fourth += x * x * x * x + y * y * y * y;
      }
    }
    const double count = 2.0 * kLanes * draws;
    CHECK(std::abs(sum / count) < 0.01);
    CHECK(std::abs(squares / count - 1.0) < 0.02);
    CHECK(std::abs(fourth / count - 3.0) < 0.1);
  }
}

CASE("categorical actions come as often as their probabilities say, and log_prob is theirs") {
  Sample sample = categorical({{false, 3}}, {}, {8}, {4, 3});
  const Network network = network_of(sample, best_kernel());
  const ActionKeys keys(sample.shape, 1);
  Pass pass(sample.shape);
  const std::vector<double> obs = observation(sample);
  for (std::size_t row = 0; row < kMostRows; ++row) pass.encode(network, row, obs.data());
  pass.forward(network, kMostRows, true);
  std::vector<double> chances;
  for (std::size_t j = 0, start = 0; j < 2; start += sample.shape.nvec[j++]) {
    double total = 0.0;
    for (std::size_t i = 0; i < sample.shape.nvec[j]; ++i)
      total += std::exp(static_cast<double>(pass.logits(0)[start + i]));
    for (std::size_t i = 0; i < sample.shape.nvec[j]; ++i) {
      chances.push_back(std::exp(static_cast<double>(pass.logits(0)[start + i])) / total);
    }
  }
  std::vector<double> counts(7);
  const int steps = 20'000;
  for (std::uint32_t step = 0; step < steps; ++step) {
    pass.sample(network, kMostRows, keys, 0, step, false, nullptr);
    for (std::size_t row = 0; row < kMostRows; ++row) {
      const auto first = static_cast<std::size_t>(pass.choices(row)[0]);
      const auto second = 4 + static_cast<std::size_t>(pass.choices(row)[1]);
      counts[first] += 1.0;
      counts[second] += 1.0;
      CHECK(std::abs(static_cast<double>(pass.log_prob(row)) - std::log(chances[first] * chances[second])) < 2e-6);
    }
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double n = steps * static_cast<double>(kMostRows);
    const double deviation = std::sqrt(n * chances[i] * (1.0 - chances[i]));
    CHECK(std::abs(counts[i] - n * chances[i]) < 5.0 * deviation);
  }
}

CASE("a masked action is never drawn, and the rest share its probability") {
  Sample sample = categorical({{false, 3}}, {}, {8}, {5});
  const Network network = network_of(sample, best_kernel());
  const ActionKeys keys(sample.shape, 1);
  Pass pass(sample.shape);
  const std::vector<double> obs = observation(sample);
  pass.encode(network, 0, obs.data());
  pass.forward(network, 1, true);
  const std::uint8_t mask[5] = {0, 1, 0, 1, 0};
  const double x = static_cast<double>(pass.logits(0)[1]), y = static_cast<double>(pass.logits(0)[3]);
  int first = 0;
  for (std::uint32_t step = 0; step < 10'000; ++step) {
    pass.sample(network, 1, keys, 0, step, false, mask);
    const int choice = pass.choices(0)[0];
    CHECK(choice == 1 || choice == 3);
    first += choice == 1;
    const double chance = 1.0 / (1.0 + std::exp(choice == 1 ? y - x : x - y));
    CHECK(std::abs(static_cast<double>(pass.log_prob(0)) - std::log(chance)) < 2e-6);
  }
  CHECK(std::abs(first / 10'000.0 - 1.0 / (1.0 + std::exp(y - x))) < 0.03);
  pass.sample(network, 1, keys, 0, 0, true, mask);
  CHECK_EQUAL(pass.choices(0)[0], x > y ? 1 : 3);
}

CASE("a Gaussian action is its mean plus deviation times a normal number") {
  Sample sample = gaussian(3, 3, -0.7);
  const Network network = network_of(sample, best_kernel());
  const ActionKeys keys(sample.shape, 1);
  Pass pass(sample.shape);
  const std::vector<double> obs = observation(sample);
  for (std::size_t row = 0; row < 2; ++row) pass.encode(network, row, obs.data());
  pass.forward(network, 2, true);
  for (std::uint32_t step = 0; step < 100; ++step) {
    pass.sample(network, 2, keys, 9, step, false, nullptr);
    for (std::uint32_t row = 0; row < 2; ++row) {
      double log_prob = 0.0;
      for (std::uint32_t j = 0; j < 3; ++j) {
        const auto words = Counted(1, Purpose::kActions).words(j / 2, 9 + row, step);
        const double radius = std::sqrt(-2.0 * std::log(static_cast<double>(uniform(words.a))));
        const double angle = 2.0 * M_PI * static_cast<double>(uniform(words.b));
        const double z = radius * (j % 2 == 0 ? std::cos(angle) : std::sin(angle));
        const double action = static_cast<double>(pass.logits(row)[j]) + std::exp(-0.7) * z;
        CHECK(std::abs(static_cast<double>(pass.reals(row)[j]) - action) < 3e-6);
        log_prob += -0.5 * z * z + 0.7 - 0.5 * std::log(2.0 * M_PI);
      }
      CHECK(std::abs(static_cast<double>(pass.log_prob(row)) - log_prob) < 1e-5);
    }
  }
  pass.sample(network, 2, keys, 9, 0, true, nullptr);
  for (std::size_t j = 0; j < 3; ++j) CHECK_EQUAL(pass.reals(1)[j], pass.logits(1)[j]);
}

CASE("Bernoulli actions come as often as their probabilities say") {
  Sample sample = categorical({{false, 3}}, {}, {8}, {4});
  sample.shape.kind = ActionKind::kBernoulli;
  sample.shape.action_size = 4;
  const Network network = network_of(sample, best_kernel());
  const ActionKeys keys(sample.shape, 1);
  Pass pass(sample.shape);
  const std::vector<double> obs = observation(sample);
  pass.encode(network, 0, obs.data());
  pass.forward(network, 1, true);
  std::vector<double> counts(4);
  const int steps = 40'000;
  for (std::uint32_t step = 0; step < steps; ++step) {
    CHECK_EQUAL(pass.sample(network, 1, keys, 0, step, false, nullptr), std::size_t{1});
    double log_prob = 0.0;
    for (std::size_t j = 0; j < 4; ++j) {
      const int choice = pass.choices(0)[j];
      counts[j] += choice;
      const auto x = static_cast<double>(pass.logits(0)[j]);
      log_prob -= std::log1p(std::exp(choice ? -x : x));
    }
    CHECK(std::abs(static_cast<double>(pass.log_prob(0)) - log_prob) < 3e-6);
  }
  for (std::size_t j = 0; j < 4; ++j) {
    const double chance = 1.0 / (1.0 + std::exp(-static_cast<double>(pass.logits(0)[j])));
    CHECK(std::abs(counts[j] / steps - chance) < 5.0 * std::sqrt(chance * (1.0 - chance) / steps));
  }
  pass.sample(network, 1, keys, 0, 0, true, nullptr);
  for (std::size_t j = 0; j < 4; ++j) CHECK_EQUAL(pass.choices(0)[j], pass.logits(0)[j] > 0.0F ? 1 : 0);
}

CASE("sampling says from which row on the output is not finite") {
  for (Sample sample : samples()) {
    const Network network = network_of(sample, best_kernel());
    const ActionKeys keys(sample.shape, 1);
    Pass pass(sample.shape);
    if (sample.shape.inputs[0].discrete) continue;
    for (std::size_t row = 0; row < 4; ++row) {
      std::vector<double> obs = observation(sample);
      if (row == 2) obs[0] = NAN;
      pass.encode(network, row, obs.data());
    }
    pass.forward(network, 4, true);
    CHECK_EQUAL(pass.sample(network, 4, keys, 0, 0, false, nullptr), std::size_t{2});
    CHECK_EQUAL(pass.sample(network, 4, keys, 0, 0, true, nullptr), std::size_t{2});
  }
}
