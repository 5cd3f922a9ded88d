#include "policy.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "slab.hpp"

namespace raceway {
namespace {

std::size_t widest(const PolicyShape& shape) {
  std::size_t most = 1;
  for (const auto* layers : {&shape.trunk, &shape.actor, &shape.critic}) {
    for (const LayerShape& layer : *layers) most = std::max(most, layer.outputs);
  }
  return round_up(most, kLanes);
}

std::size_t check_chain(const char* name, const std::vector<LayerShape>& layers, std::size_t inputs) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].inputs != inputs || layers[i].outputs == 0) {
      throw std::invalid_argument("layer " + std::to_string(i) + " of the policy's " + name + " takes " +
                                  std::to_string(layers[i].inputs) + " numbers and gives " +
                                  std::to_string(layers[i].outputs) + ": what comes before it gives " +
                                  std::to_string(inputs) + ".");
    }
    inputs = layers[i].outputs;
  }
  return inputs;
}

}  // namespace

// --- shape

std::size_t PolicyShape::num_inputs() const {
  std::size_t total = 0;
  for (const Input& input : inputs) total += input.discrete ? 1 : input.size;
  return total;
}

std::size_t PolicyShape::num_features() const {
  return std::accumulate(inputs.begin(), inputs.end(), std::size_t{0},
                         [](std::size_t sum, const Input& input) { return sum + input.size; });
}

std::size_t PolicyShape::num_boxed() const {
  return std::accumulate(inputs.begin(), inputs.end(), std::size_t{0},
                         [](std::size_t sum, const Input& input) { return sum + (input.discrete ? 0 : input.size); });
}

std::size_t PolicyShape::num_logits() const {
  return kind == ActionKind::kCategorical ? std::accumulate(nvec.begin(), nvec.end(), std::size_t{0}) : action_size;
}

std::size_t PolicyShape::num_draws() const {
  return kind == ActionKind::kGaussian ? (action_size + 1) / 2 : action_size;
}

std::size_t PolicyShape::num_params() const {
  std::size_t end = kind == ActionKind::kGaussian ? log_std + action_size : 0;
  for (const auto* layers : {&trunk, &actor, &critic}) {
    for (const LayerShape& layer : *layers) {
      end = std::max({end, layer.weights + layer.inputs * layer.outputs, layer.bias + layer.outputs});
    }
  }
  return end;
}

std::size_t PolicyShape::num_multiplications() const {
  std::size_t count = 0;
  for (const auto* layers : {&trunk, &actor, &critic}) {
    for (const LayerShape& layer : *layers) count += layer.inputs * layer.outputs;
  }
  return count;
}

void PolicyShape::check() const {
  if (num_features() == 0) throw std::invalid_argument("the policy has no inputs.");
  if (actor.empty() || critic.empty()) throw std::invalid_argument("the policy needs layers for actor and critic.");
  if (action_size == 0 || (kind == ActionKind::kCategorical &&
                           (nvec.size() != action_size || std::count(nvec.begin(), nvec.end(), std::size_t{0}) > 0))) {
    throw std::invalid_argument("the policy's action has a component without values.");
  }
  const std::size_t shared = check_chain("trunk", trunk, num_features());
  const std::size_t logits = check_chain("actor", actor, shared), values = check_chain("critic", critic, shared);
  if (logits != num_logits() || values != 1) {
    throw std::invalid_argument("the policy's actor gives " + std::to_string(logits) + " numbers and its critic " +
                                std::to_string(values) + ": its actions take " + std::to_string(num_logits()) +
                                ", and a value is one.");
  }
}

// --- weights

Network::Network(const PolicyShape& shape, std::span<const float> params, const float* mean, const float* rate,
                 const Kernel& kernel)
    : shape_(shape), kernel_(kernel), std_(shape.action_size) {
  std::size_t first = 0, boxed = 0, discrete = 0;
  for (const PolicyShape::Input& input : shape_.inputs) {
    if (input.discrete) {
      segments_.push_back({true, first, input.size, discrete++});
    } else if (!segments_.empty() && !segments_.back().discrete) {
      segments_.back().count += input.size;
      boxed += input.size;
    } else {
      segments_.push_back({false, first, input.size, boxed});
      boxed += input.size;
    }
    first += input.size;
  }
  trunk_ = packed(shape_.trunk, params, false);
  actor_ = packed(shape_.actor, params, true);
  critic_ = packed(shape_.critic, params, true);
  if (mean && rate) {
    mean_.assign(mean, mean + boxed);
    rate_.assign(rate, rate + boxed);
  }
  if (shape_.kind == ActionKind::kGaussian) {
    const auto start = params.begin() + static_cast<std::ptrdiff_t>(shape_.log_std);
    log_std_.assign(start, start + static_cast<std::ptrdiff_t>(shape_.action_size));
    std::copy(log_std_.begin(), log_std_.end(), std_.data());
    kernel_.exponentials(std_.data(), round_up(shape_.action_size, kLanes));
  }
}

std::vector<Network::Layer> Network::packed(const std::vector<LayerShape>& layers, std::span<const float> params,
                                            bool last_is_linear) {
  std::vector<Layer> result;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LayerShape& shape = layers[i];
    const std::size_t width = round_up(shape.outputs, kLanes);
    Aligned<float> weights(shape.inputs * width), bias(width);
    std::copy_n(params.data() + shape.bias, shape.outputs, bias.data());
    for (std::size_t panel = 0; panel < shape.outputs; panel += kPanel) {
      const std::size_t wide = std::min(kPanel, width - panel), used = std::min(wide, shape.outputs - panel);
      float* to = weights.data() + panel * shape.inputs;
      for (std::size_t k = 0; k < shape.inputs; ++k) {
        std::copy_n(params.data() + shape.weights + k * shape.outputs + panel, used, to + k * wide);
      }
    }
    const bool linear = last_is_linear && i + 1 == layers.size();
    result.push_back(
        {shape.inputs, width / kLanes, weights.data(), bias.data(), linear ? Activation::kNone : shape_.activation});
    memory_.push_back(std::move(weights));
    memory_.push_back(std::move(bias));
  }
  return result;
}

Policy::Policy(PolicyShape shape, const Kernel& kernel) : shape_(std::move(shape)), kernel_(kernel) {
  shape_.check();
}

void Policy::load(std::span<const float> params, const float* mean, const float* rate) {
  if (params.size() < shape_.num_params()) {
    throw std::invalid_argument("params has " + std::to_string(params.size()) + " numbers: the policy's layers take " +
                                std::to_string(shape_.num_params()) + ".");
  }
  auto network = std::make_shared<const Network>(shape_, params, mean, rate, kernel_);
  const std::lock_guard lock(mutex_);
  network_ = std::move(network);
}

std::shared_ptr<const Network> Policy::network() const {
  const std::lock_guard lock(mutex_);
  return network_;
}

ActionKeys::ActionKeys(const PolicyShape& shape, std::uint64_t seed) {
  const Counted counted(seed, Purpose::kActions);
  for (std::uint32_t draw = 0; draw < shape.num_draws(); ++draw) keys_.push_back(counted.key(draw));
}

// --- passing rows through

Pass::Pass(const PolicyShape& shape)
    : boxed_(shape.num_boxed()),
      discrete_(static_cast<std::size_t>(
          std::count_if(shape.inputs.begin(), shape.inputs.end(), [](const auto& input) { return input.discrete; }))),
      action_size_(shape.action_size),
      logit_stride_(round_up(shape.num_logits(), kLanes)),
      feature_stride_(round_up(std::max<std::size_t>(boxed_, 1), kLanes)),
      hidden_stride_(widest(shape)),
      features_(kMostRows * feature_stride_),
      hidden_(3 * kMostRows * hidden_stride_),
      logits_(kMostRows * logit_stride_),
      values_(kMostRows * kLanes),
      weights_(kMostRows * logit_stride_),
      totals_(action_size_ * kLanes),
      normals_(2 * shape.num_draws() * kLanes),
      indices_(kMostRows * discrete_),
      choices_(kMostRows * action_size_),
      reals_(kMostRows * action_size_),
      most_(kMostRows * action_size_),
      words_a_(shape.num_draws() * kLanes),
      words_b_(shape.num_draws() * kLanes) {}

void Pass::forward(const Network& network, std::size_t rows, bool acts) {
  const float* shared = nullptr;  // the features
  if (!network.trunk().empty()) {
    float* last = hidden_.data() + 2 * kMostRows * hidden_stride_;
    run(network, network.trunk(), rows, nullptr, last, hidden_stride_);
    shared = last;
  }
  if (acts) run(network, network.actor(), rows, shared, logits_.data(), logit_stride_);
  run(network, network.critic(), rows, shared, values_.data(), kLanes);
}

// From `in` (null: the features) to `last`, by way of two buffers in turn.
void Pass::run(const Network& network, const std::vector<Network::Layer>& layers, std::size_t rows, const float* in,
               float* last, std::size_t last_stride) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const bool ends = i + 1 == layers.size();
    float* out = ends ? last : hidden_.data() + (i % 2) * kMostRows * hidden_stride_;
    const std::size_t stride = ends ? last_stride : hidden_stride_;
    const Network::Layer& layer = layers[i];
    if (in) {
      network.kernel().dense({in, hidden_stride_, 0, layer.inputs, layer.weights, layer.inputs, layer.bias, out, stride,
                              layer.vectors, rows, layer.activation});
    } else {
      first_layer(network, layer, rows, out, stride);
    }
    in = out;
  }
}

void Pass::first_layer(const Network& network, const Network::Layer& layer, std::size_t rows, float* out,
                       std::size_t stride) {
  const auto& segments = network.segments();
  const auto dense = [&](const Network::Segment& segment, const float* bias, Activation activation) {
    network.kernel().dense({features_.data() + segment.place, feature_stride_, segment.first, segment.count,
                            layer.weights, layer.inputs, bias, out, stride, layer.vectors, rows, activation});
  };
  if (segments.size() == 1 && !segments[0].discrete) {
    dense(segments[0], layer.bias, layer.activation);
    return;
  }
  const std::size_t width = layer.vectors * kLanes;
  for (std::size_t row = 0; row < rows; ++row) std::copy_n(layer.bias, width, out + row * stride);
  for (const Network::Segment& segment : segments) {
    if (!segment.discrete) {
      dense(segment, nullptr, Activation::kNone);
      continue;
    }
    for (std::size_t row = 0; row < rows; ++row) {
      const std::size_t k = segment.first + static_cast<std::size_t>(indices_[row * discrete_ + segment.place]);
      for (std::size_t panel = 0; panel < width; panel += kPanel) {
        const std::size_t wide = std::min(kPanel, width - panel);
        const float* weights = layer.weights + panel * layer.inputs + k * wide;
        for (std::size_t i = 0; i < wide; ++i) out[row * stride + panel + i] += weights[i];
      }
    }
  }
  for (std::size_t row = 0; row < rows; ++row) network.kernel().activate(out + row * stride, width, layer.activation);
}

}  // namespace raceway
