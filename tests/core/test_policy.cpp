// The policy's arithmetic against plain code in double precision, for every kernel that this CPU can run.
#include <cmath>

#include "check.hpp"
#include "policy.hpp"
#include "small_policy.hpp"

using namespace raceway;
using namespace raceway::test;

namespace {

std::vector<double> reference(const Sample& sample, const std::vector<LayerShape>& layers, std::vector<double> x,
                              bool last_is_linear) {
  for (std::size_t l = 0; l < layers.size(); ++l) {
    std::vector<double> y(layers[l].outputs);
    for (std::size_t o = 0; o < y.size(); ++o) {
      y[o] = static_cast<double>(sample.params[layers[l].bias + o]);
      for (std::size_t i = 0; i < x.size(); ++i) {
        y[o] += x[i] * static_cast<double>(sample.params[layers[l].weights + i * y.size() + o]);
      }
      if (last_is_linear && l + 1 == layers.size()) continue;
      y[o] = sample.shape.activation == Activation::kTanh ? std::tanh(y[o]) : std::max(y[o], 0.0);
    }
    x = y;
  }
  return x;
}

// What the network gets for an observation, discrete leaves as one-hot numbers.
std::vector<double> features(const Sample& sample, const std::vector<double>& obs) {
  std::vector<double> result;
  std::size_t at = 0;
  for (const auto& input : sample.shape.inputs) {
    if (input.discrete) {
      for (std::size_t i = 0; i < input.size; ++i) result.push_back(static_cast<double>(i) == obs[at] ? 1.0 : 0.0);
      at += 1;
    } else {
      for (std::size_t i = 0; i < input.size; ++i) result.push_back(obs[at++]);
    }
  }
  return result;
}

}  // namespace

CASE("a forward pass is that of plain code in double precision") {
  for (const Kernel* kernel : kernels()) {
    for (Sample sample : samples()) {
      const Network network = network_of(sample, *kernel);
      Pass pass(sample.shape);
      for (std::size_t rows = 1; rows <= kMostRows; ++rows) {
        std::vector<std::vector<double>> observations;
        for (std::size_t row = 0; row < rows; ++row) {
          observations.push_back(observation(sample));
          CHECK(pass.encode(network, row, observations.back().data()));
        }
        pass.forward(network, rows, true);
        for (std::size_t row = 0; row < rows; ++row) {
          const auto shared = reference(sample, sample.shape.trunk, features(sample, observations[row]), false);
          const auto logits = reference(sample, sample.shape.actor, shared, true);
          for (std::size_t i = 0; i < logits.size(); ++i) {
            CHECK(std::abs(static_cast<double>(pass.logits(row)[i]) - logits[i]) < 3e-6);
          }
          const double value = reference(sample, sample.shape.critic, shared, true)[0];
          CHECK(std::abs(static_cast<double>(pass.value(row)) - value) < 3e-6);
        }
      }
    }
  }
}

CASE("a row's result does not depend on the rows computed with it") {
  for (const Kernel* kernel : kernels()) {
    for (Sample sample : samples()) {
      const Network network = network_of(sample, *kernel);
      const ActionKeys keys(sample.shape, 11);
      Pass alone(sample.shape), together(sample.shape);
      std::vector<std::vector<double>> observations;
      for (std::size_t row = 0; row < kMostRows; ++row) observations.push_back(observation(sample));
      for (std::size_t rows = 1; rows <= kMostRows; ++rows) {
        for (std::size_t row = 0; row < rows; ++row) together.encode(network, row, observations[row].data());
        together.forward(network, rows, true);
        CHECK_EQUAL(together.sample(network, rows, keys, 40, 3, false, nullptr), rows);
        for (std::size_t row = 0; row < rows; ++row) {
          alone.encode(network, 0, observations[row].data());
          alone.forward(network, 1, true);
          alone.sample(network, 1, keys, static_cast<std::uint32_t>(40 + row), 3, false, nullptr);
          const std::size_t logits = sample.shape.num_logits();
          CHECK(std::equal(alone.logits(0), alone.logits(0) + logits, together.logits(row)));
          CHECK_EQUAL(alone.value(0), together.value(row));
          CHECK_EQUAL(alone.log_prob(0), together.log_prob(row));
          if (sample.shape.kind == ActionKind::kGaussian) {
            CHECK(std::equal(alone.reals(0), alone.reals(0) + sample.shape.action_size, together.reals(row)));
          } else {
            CHECK(std::equal(alone.choices(0), alone.choices(0) + sample.shape.action_size, together.choices(row)));
          }
        }
      }
    }
  }
}

CASE("tanh, exp and log are those of the C library, up to rounding") {
  for (const Kernel* kernel : kernels()) {
    Aligned<float> lanes(kLanes);
    float* x = lanes.data();
    const auto each = [&](double low, double high, auto run, auto right, double absolute, double relative) {
      double worst = 0.0;
      for (double at = low; at < high; at += (high - low) / 40'000) {
        for (std::size_t i = 0; i < kLanes; ++i) x[i] = static_cast<float>(at);
        const double exact = right(static_cast<double>(x[0]));
        run();
        worst = std::max(worst, std::abs(static_cast<double>(x[3]) - exact) / (absolute + relative * std::abs(exact)));
      }
      CHECK(worst < 1.0);
    };
    const auto tanh = [&] { kernel->activate(x, kLanes, Activation::kTanh); };
    each(-20.0, 20.0, tanh, [](double at) { return std::tanh(at); }, 3e-7, 0.0);
    each(-1e-3, 1e-3, tanh, [](double at) { return std::tanh(at); }, 1e-30, 3e-7);
    each(-80.0, 80.0, [&] { kernel->exponentials(x, kLanes); }, [](double at) { return std::exp(at); }, 0.0, 3e-7);
    each(1e-7, 2.0, [&] { kernel->logarithms(x, kLanes); }, [](double at) { return std::log(at); }, 1e-7, 2e-7);
    each(1.0, 1e6, [&] { kernel->logarithms(x, kLanes); }, [](double at) { return std::log(at); }, 1e-7, 2e-7);
  }
}

CASE("what is not a number stays so") {
  for (const Kernel* kernel : kernels()) {
    Aligned<float> lanes(kLanes);
    for (const Activation activation : {Activation::kTanh, Activation::kRelu}) {
      lanes.data()[2] = NAN;
      kernel->activate(lanes.data(), kLanes, activation);
      CHECK(std::isnan(lanes.data()[2]));
      CHECK_EQUAL(lanes.data()[1], 0.0F);
    }
    kernel->exponentials(lanes.data(), kLanes);
    CHECK(std::isnan(lanes.data()[2]));
    CHECK_EQUAL(lanes.data()[1], 1.0F);
    kernel->logarithms(lanes.data(), kLanes);
    CHECK(std::isnan(lanes.data()[2]));
    CHECK_EQUAL(lanes.data()[1], 0.0F);
  }
}

CASE("observations are scaled and clipped, discrete ones are not") {
  Sample sample = categorical({{false, 2}, {true, 3}, {false, 1}}, {}, {}, {2});
  const float mean[3] = {1.0F, -2.0F, 0.5F}, rate[3] = {2.0F, 0.5F, 100.0F};
  const Network network(sample.shape, sample.params, mean, rate, best_kernel());
  Pass pass(sample.shape);
  const std::vector<double> obs{1.5, 3.0, 2.0, 7.0};
  pass.encode(network, 0, obs.data());
  pass.forward(network, 1, true);
  const auto logits = reference(sample, sample.shape.actor, {1.0, 2.5, 0.0, 0.0, 1.0, 10.0}, true);
  for (std::size_t i = 0; i < 2; ++i) CHECK(std::abs(static_cast<double>(pass.logits(0)[i]) - logits[i]) < 3e-6);
}

CASE("a discrete observation outside its space is refused, not looked up") {
  Sample sample = categorical({{true, 4}}, {}, {8}, {2});
  const Network network = network_of(sample, best_kernel());
  Pass pass(sample.shape);
  for (const std::int64_t wrong : {std::int64_t{4}, std::int64_t{-1}, INT64_MAX})
    CHECK(!pass.encode(network, 0, &wrong));
  const std::int64_t right = 3;
  CHECK(pass.encode(network, 0, &right));
}

CASE("a policy whose layers do not fit together is refused") {
  const Sample good = categorical({{false, 3}}, {}, {8}, {2});
  PolicyShape wide = good.shape;
  wide.actor[0].inputs = 4;
  CHECK_THROWS(std::invalid_argument, "layer 0 of the policy's actor takes 4", Policy(wide, best_kernel()));
  PolicyShape many = good.shape;
  many.nvec = {3};
  CHECK_THROWS(std::invalid_argument, "actor gives 2 numbers", Policy(many, best_kernel()));
  PolicyShape none = good.shape;
  none.critic.clear();
  CHECK_THROWS(std::invalid_argument, "actor and critic", Policy(none, best_kernel()));
  Policy policy(good.shape);
  CHECK(policy.network() == nullptr);
  const std::vector<float> few(good.params.begin(), good.params.end() - 1);
  CHECK_THROWS(std::invalid_argument, "the policy's layers take", policy.load(few, nullptr, nullptr));
}
