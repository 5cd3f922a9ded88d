// What an environment struct is made of, with what stands in for parts that it leaves out; and what environments with
// equal arguments share.
#pragma once

#include "env.hpp"
#include "picture.hpp"

namespace raceway {

// What environments with equal arguments share, for those that have no arguments.
struct NoConfig {
  explicit NoConfig(const Arguments&) {}
};

template <class Env>
struct ConfigTrait {
  using Type = NoConfig;
};
template <class Env>
  requires requires { typename Env::Config; }
struct ConfigTrait<Env> {
  using Type = typename Env::Config;
};
template <class Env>
using ConfigOf = typename ConfigTrait<Env>::Type;

template <class Env>
struct Parts {
  static constexpr std::size_t fault_count() {
    if constexpr (requires { Env::kFaults; }) {
      return Env::kFaults.size();
    } else {
      return 0;
    }
  }
  static constexpr const char* const* fault_names() {
    if constexpr (requires { Env::kFaults; }) {
      return Env::kFaults.data();
    } else {
      return nullptr;
    }
  }
  static constexpr std::size_t kNumFaults = fault_count();
  static constexpr const char* const* kFaults = fault_names();

  static constexpr const char* name() {
    if constexpr (requires { Env::kName; }) {
      return Env::kName;
    } else {
      return "";
    }
  }
  static constexpr std::span<const raceway_parameter> parameters() {
    if constexpr (requires { Env::kParameters; }) {
      return {Env::kParameters.data(), Env::kParameters.size()};
    } else {
      return {};
    }
  }
  static constexpr std::span<const raceway_option> options() {
    if constexpr (requires { Env::kOptions; }) {
      return {Env::kOptions.data(), Env::kOptions.size()};
    } else {
      return {};
    }
  }
  static constexpr bool kHasInfo = requires(const Env& env, InfoRow row) { env.info(row); };
  static constexpr bool kHasPicture = requires(const Env& env, Picture& picture) { env.draw(picture); };
  static constexpr std::int32_t picture_width() {
    if constexpr (kHasPicture) {
      return Env::kPictureWidth;
    } else {
      return 0;
    }
  }
  static constexpr std::int32_t picture_height() {
    if constexpr (kHasPicture) {
      return Env::kPictureHeight;
    } else {
      return 0;
    }
  }

  // The values of options that nobody has set.
  static constexpr auto fallbacks() {
    std::array<double, options().size() + 1> values{};
    for (std::size_t i = 0; i < options().size(); ++i) values[i] = options()[i].fallback;
    return values;
  }

  static Spaces spaces_of(const ConfigOf<Env>& config) {
    if constexpr (requires { Env::spaces(config); }) {
      return Env::spaces(config);
    } else {
      return Env::spaces();
    }
  }
  static Env made(const ConfigOf<Env>& config) {
    if constexpr (std::is_constructible_v<Env, const ConfigOf<Env>&>) {
      return Env(config);
    } else {
      return Env();
    }
  }

  // How long rows of observations and actions are: fixed for the task, or by its arguments.
  static std::size_t obs_size(const Env& env) {
    if constexpr (requires { Env::kObsSize; }) {
      return Env::kObsSize;
    } else {
      return env.obs_size();
    }
  }
  static std::size_t action_size(const Env& env) {
    if constexpr (requires { Env::kActionSize; }) {
      return Env::kActionSize;
    } else {
      return env.action_size();
    }
  }

  static void restart(Env& env, Random& random, const double* options) {
    if constexpr (requires { env.reset(random, options); }) {
      env.reset(random, options);
    } else {
      env.reset(random);
    }
  }
};

// Shared by environments with equal arguments.
template <class Env>
struct ConfigurationOf {
  explicit ConfigurationOf(const Arguments& arguments) : config(arguments), spaces(Parts<Env>::spaces_of(config)) {
    Env sample(Parts<Env>::made(config));
    Describe describe;
    sample.archive(describe);
    state = std::move(describe.columns);
    check(sample);
    obs_views = views(spaces.observation);
    info_views = views(spaces.info);
    state_views = views(state);
    layout = {spaces.container,       obs_views.size(),    obs_views.data(),   spaces.action.view(),
              info_views.size(),      info_views.data(),   state_views.size(), state_views.data(),
              Parts<Env>::kNumFaults, Parts<Env>::kFaults, spaces.step_s};
  }
  ConfigurationOf(const ConfigurationOf&) = delete;
  ConfigurationOf& operator=(const ConfigurationOf&) = delete;

  ConfigOf<Env> config;
  Spaces spaces;
  std::vector<Column> state;
  std::vector<raceway_column> obs_views, info_views, state_views;
  raceway_layout layout{};

 private:
  // What would otherwise be read or written beyond its row.
  void check(const Env& sample) const {
    if (spaces.observation.empty()) throw std::invalid_argument("spaces() has no observation.");
    std::size_t elements = 0;
    for (const auto& column : spaces.observation) {
      check_type<typename Env::Scalar>("Scalar", "an observation", column);
      elements += elements_of(column.view());
    }
    check_size("kObsSize", Parts<Env>::obs_size(sample), "an observation", elements);
    check_type<typename Env::Action>("Action", "an action", spaces.action);
    check_size("kActionSize", Parts<Env>::action_size(sample), "an action", elements_of(spaces.action.view()));
    check_names(spaces.info, "info columns");
    check_names(state, "parts of the state");
    if (!Parts<Env>::kHasInfo && !spaces.info.empty()) {
      throw std::invalid_argument("spaces() names info columns, but there is no info(InfoRow) that fills them.");
    }
  }

  static void check_size(const char* name, std::size_t size, const char* what, std::size_t elements) {
    if (size == elements) return;
    throw std::invalid_argument(std::string(name) + " is " + std::to_string(size) + ", but spaces() says that " + what +
                                " has " + std::to_string(elements) + " numbers.");
  }

  template <class T>
  static void check_type(const char* name, const char* what, const Column& column) {
    if (column.dtype == dtype_of<T>()) return;
    throw std::invalid_argument(std::string(name) + " is another type than spaces() has for " + what +
                                ": a discrete() is of std::int64_t, a box<T>() of T.");
  }

  static void check_names(const std::vector<Column>& columns, const char* what) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (columns[i].name != columns[j].name) continue;
        throw std::invalid_argument(std::string("two ") + what + " are called '" + columns[i].name + "'.");
      }
    }
  }

  static std::vector<raceway_column> views(const std::vector<Column>& columns) {
    std::vector<raceway_column> result;
    for (const auto& column : columns) result.push_back(column.view());
    return result;
  }
};

}  // namespace raceway
