// A small network that acts: what it is made of, its weights as the kernel wants them, and its pass over a few rows.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "kernel.hpp"
#include "random.hpp"

namespace raceway {

// Weights are [inputs, outputs], row-major, from `weights` on in the vector of all parameters.
struct LayerShape {
  std::size_t weights = 0, bias = 0, inputs = 0, outputs = 0;
};

enum class ActionKind : std::uint8_t { kCategorical, kGaussian, kBernoulli };

struct PolicyShape {
  struct Input {
    bool discrete = false;
    std::size_t size = 0;  // numbers of a box, values of a discrete one (which is one-hot to the network)
  };

  std::vector<Input> inputs;
  std::vector<LayerShape> trunk, actor, critic;  // an empty trunk: two separate networks
  Activation activation = Activation::kTanh;     // after all layers but the last of actor and critic
  ActionKind kind = ActionKind::kCategorical;
  std::vector<std::size_t> nvec;  // categorical: how many values each component has
  std::size_t action_size = 1;    // components
  std::size_t log_std = 0;        // Gaussian: where these parameters are

  std::size_t num_inputs() const;  // numbers of an observation
  std::size_t num_features() const;
  std::size_t num_boxed() const;   // features that come from boxes
  std::size_t num_logits() const;  // or means
  std::size_t num_draws() const;   // pairs of random words that an action takes
  std::size_t num_params() const;  // how many the vector must have at least
  std::size_t num_multiplications() const;
  void check() const;  // throws std::invalid_argument if layers and sizes do not fit together
};

// Four-byte numbers, zero at first, aligned to cache lines.
template <class T>
class Aligned {
 public:
  Aligned() = default;
  explicit Aligned(std::size_t count) : lines_((count + 15) / 16) {}
  T* data() { return lines_.data()->values; }
  const T* data() const { return lines_.data()->values; }

 private:
  struct alignas(64) Line {
    T values[16] = {};
  };
  std::vector<Line> lines_;
};

// Parameters in the kernel's order. Nothing changes in it once it is made: threads share it.
class Network {
 public:
  struct Layer {
    std::size_t inputs = 0, vectors = 0;
    const float *weights = nullptr, *bias = nullptr;
    Activation activation = Activation::kNone;
  };
  // Features one after the other that are multiplied, or one that selects a row of the first layer's weights.
  struct Segment {
    bool discrete = false;
    std::size_t first = 0, count = 0;  // rows of weights
    std::size_t place = 0;             // among the boxed features, or among the discrete ones
  };

  Network(const PolicyShape& shape, std::span<const float> params, const float* mean, const float* rate,
          const Kernel& kernel);

  const PolicyShape& shape() const { return shape_; }
  const Kernel& kernel() const { return kernel_; }
  const std::vector<Segment>& segments() const { return segments_; }
  const std::vector<Layer>& trunk() const { return trunk_; }
  const std::vector<Layer>& actor() const { return actor_; }
  const std::vector<Layer>& critic() const { return critic_; }
  bool scaled() const { return !mean_.empty(); }
  const float* mean() const { return mean_.data(); }
  const float* rate() const { return rate_.data(); }
  float log_std(std::size_t component) const { return log_std_[component]; }
  float std(std::size_t component) const { return std_.data()[component]; }

 private:
  std::vector<Layer> packed(const std::vector<LayerShape>& layers, std::span<const float> params, bool last_is_linear);

  const PolicyShape shape_;
  const Kernel& kernel_;
  std::vector<Segment> segments_;
  std::vector<Layer> trunk_, actor_, critic_;
  std::vector<Aligned<float>> memory_;
  std::vector<float> mean_, rate_, log_std_;
  Aligned<float> std_;
};

// What a policy is and the weights it has now. Loading new ones does not disturb those who still use the old.
class Policy {
 public:
  explicit Policy(PolicyShape shape, const Kernel& kernel = best_kernel());

  const PolicyShape& shape() const { return shape_; }
  // `mean` and `rate` have one number per boxed feature; null: observations are not scaled.
  void load(std::span<const float> params, const float* mean, const float* rate);
  std::shared_ptr<const Network> network() const;  // null: nothing was loaded yet

 private:
  const PolicyShape shape_;
  const Kernel& kernel_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Network> network_;
};

// The keys of all draws that one action takes.
class ActionKeys {
 public:
  ActionKeys(const PolicyShape& shape, std::uint64_t seed);
  Pair<std::uint32_t> operator[](std::size_t draw) const { return keys_[draw]; }

 private:
  std::vector<Pair<std::uint32_t>> keys_;
};

// One thread's memory for passing up to kMostRows rows through a network.
class Pass {
 public:
  explicit Pass(const PolicyShape& shape);

  // Reads one observation, its leaves one after the other. False if a discrete leaf is outside its space.
  template <class T>
  bool encode(const Network& network, std::size_t row, const T* obs);

  // From what was encoded: logits (or means) if `acts`, and values.
  void forward(const Network& network, std::size_t rows, bool acts);

  // Draws an action for each row, of consecutive environments. `mask` has one byte per logit, rows one after the other;
  // null: all are allowed. Returns how many rows, from the first on, have an action that is finite.
  std::size_t sample(const Network& network, std::size_t rows, const ActionKeys& keys, std::uint32_t first_env,
                     std::uint32_t step, bool greedy, const std::uint8_t* mask);

  float value(std::size_t row) const { return values_.data()[row * kLanes]; }
  float log_prob(std::size_t row) const { return log_probs_[row]; }
  const float* logits(std::size_t row) const { return logits_.data() + row * logit_stride_; }
  // Whichever of the two the policy's kind has.
  const std::int32_t* choices(std::size_t row) const { return choices_.data() + row * action_size_; }
  const float* reals(std::size_t row) const { return reals_.data() + row * action_size_; }

 private:
  void run(const Network& network, const std::vector<Network::Layer>& layers, std::size_t rows, const float* in,
           float* last, std::size_t last_stride);
  void first_layer(const Network& network, const Network::Layer& layer, std::size_t rows, float* out,
                   std::size_t stride);
  std::size_t sample_categorical(const Network& network, std::size_t rows, bool greedy, const std::uint8_t* mask);
  std::size_t sample_gaussian(const Network& network, std::size_t rows, bool greedy);
  std::size_t sample_bernoulli(const Network& network, std::size_t rows, bool greedy, const std::uint8_t* mask);
  static std::int32_t choose(const float* weights, std::size_t count, float level, bool greedy,
                             const std::uint8_t* mask);

  const std::size_t boxed_, discrete_, action_size_, logit_stride_, feature_stride_, hidden_stride_;
  Aligned<float> features_, hidden_, logits_, values_, weights_, totals_, normals_;
  std::vector<std::int32_t> indices_, choices_;
  std::vector<float> reals_, most_;
  Aligned<std::uint32_t> words_a_, words_b_;  // eight per draw
  float log_probs_[kMostRows] = {};
};

// (x - mean) / deviation for networks, without what lies far out.
inline float scaled(float x, float mean, float rate) {
  const float y = (x - mean) * rate;
  return y < -10.0F ? -10.0F : y > 10.0F ? 10.0F : y;
}

template <class T>
[[gnu::always_inline]] inline bool Pass::encode(const Network& network, std::size_t row, const T* obs) {
  float* features = features_.data() + row * feature_stride_;
  std::int32_t* indices = indices_.data() + row * discrete_;
  const float *mean = network.mean(), *rate = network.rate();
  bool inside = true;
  for (const Network::Segment& segment : network.segments()) {
    if (segment.discrete) {
      const auto index = static_cast<std::int64_t>(*obs++);
      const bool fits = index >= 0 && index < static_cast<std::int64_t>(segment.count);
      indices[segment.place] = fits ? static_cast<std::int32_t>(index) : 0;
      inside = inside && fits;
      continue;
    }
    for (std::size_t i = 0; i < segment.count; ++i) {
      const std::size_t at = segment.place + i;
      const auto x = static_cast<float>(obs[i]);
      features[at] = network.scaled() ? raceway::scaled(x, mean[at], rate[at]) : x;
    }
    obs += segment.count;
  }
  return inside;
}

}  // namespace raceway
