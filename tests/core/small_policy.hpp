// Small policies with random weights, and the kernels that this CPU can run.
#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "policy.hpp"

namespace raceway::test {

inline std::vector<const Kernel*> kernels() {
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

inline Sample categorical(const std::vector<PolicyShape::Input>& inputs, const std::vector<std::size_t>& trunk,
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

inline Sample gaussian(std::size_t inputs, std::size_t size, double log_std) {
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

inline Network network_of(const Sample& sample, const Kernel& kernel) {
  return {sample.shape, sample.params, nullptr, nullptr, kernel};
}

inline std::vector<double> observation(Sample& sample) {
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

inline std::vector<Sample> samples() {
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

}  // namespace raceway::test
