// The policy's arithmetic against plain code in double precision, for every kernel that this CPU can run.
#include <array>
#include <cmath>
#include <random>

#include "check.hpp"
#include "policy.hpp"

using namespace raceway;

namespace {

std::vector<const Kernel*> kernels() {
  std::vector<const Kernel*> all{&kGenericKernel};
  if (avx2_kernel()) all.push_back(avx2_kernel());
  return all;
}

// A policy with layers of the given widths, its weights drawn by a generator.
struct Sample {
  PolicyShape shape;
  std::vector<float> params;
  std::mt19937 random{7};

  std::size_t draw(std::size_t count, double scale) {
    std::normal_distribution<double> normal(0.0, scale);
    const std::size_t start = params.size();
    for (std::size_t i = 0; i < count; ++i) params.push_back(static_cast<float>(normal(random)));
    return start;
  }
  std::vector<LayerShape> chain(std::size_t inputs, const std::vector<std::size_t>& widths) {
    std::vector<LayerShape> layers;
    for (const std::size_t width : widths) {
      LayerShape layer;
      layer.inputs = inputs;
      layer.outputs = width;
      layer.weights = draw(inputs * width, 1.0 / std::sqrt(static_cast<double>(inputs)));
      layer.bias = draw(width, 0.3);
      layers.push_back(layer);
      inputs = width;
    }
    return layers;
  }
};

Sample categorical(const std::vector<PolicyShape::Input>& inputs, const std::vector<std::size_t>& trunk,
                   const std::vector<std::size_t>& hidden, const std::vector<std::size_t>& nvec,
                   Activation activation = Activation::kTanh) {
  Sample sample;
  sample.shape.inputs = inputs;
  sample.shape.activation = activation;
  sample.shape.nvec = nvec;
  sample.shape.action_size = nvec.size();
  const std::size_t features = sample.shape.num_features(), shared = trunk.empty() ? features : trunk.back();
  sample.shape.trunk = sample.chain(features, trunk);
  std::vector<std::size_t> widths = hidden;
  widths.push_back(sample.shape.num_logits());
  sample.shape.actor = sample.chain(shared, widths);
  widths.back() = 1;
  sample.shape.critic = sample.chain(shared, widths);
  return sample;
}

Sample gaussian(std::size_t inputs, std::size_t size, double log_std) {
  Sample sample;
  sample.shape.inputs = {{false, inputs}};
  sample.shape.kind = ActionKind::kGaussian;
  sample.shape.action_size = size;
  sample.shape.actor = sample.chain(inputs, {16, size});
  sample.shape.critic = sample.chain(inputs, {16, 1});
  sample.shape.log_std = sample.params.size();
  sample.params.insert(sample.params.end(), size, static_cast<float>(log_std));
  return sample;
}

Network network_of(const Sample& sample, const Kernel& kernel) {
  return {sample.shape, sample.params, nullptr, nullptr, kernel};
}

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

std::vector<double> observation(Sample& sample) {
  std::vector<double> obs;
  std::normal_distribution<double> normal;
  for (const auto& input : sample.shape.inputs) {
    if (input.discrete) {
      obs.push_back(static_cast<double>(sample.random() % input.size));
    } else {
      for (std::size_t i = 0; i < input.size; ++i) obs.push_back(normal(sample.random));
    }
  }
  return obs;
}

std::vector<Sample> samples() {
  return {
      categorical({{false, 4}}, {}, {64, 64}, {2}),
      categorical({{false, 17}}, {}, {33, 7}, {3, 4, 11}, Activation::kRelu),
      categorical({{true, 16}}, {}, {64}, {4}),
      categorical({{true, 32}, {true, 11}, {true, 2}}, {24}, {8}, {2}),
      categorical({{false, 3}, {true, 5}, {false, 2}, {false, 6}}, {40, 24}, {}, {5}),
      categorical({{false, 1}}, {}, {}, {1}),
      categorical({{false, 100}}, {}, {256, 256}, {18}),
      gaussian(9, 5, -0.5),
  };
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
