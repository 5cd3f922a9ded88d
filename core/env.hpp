// What a native environment is.
//
// One struct in one header:
//
//   struct MyTask {
//     static constexpr const char* kName = "MyTask";               // for errors; a task of one's own has its id
//     static constexpr std::array kParameters{raceway_parameter{"gravity", RACEWAY_REAL, "9.8"}};  // only if it has
//     any static constexpr std::array kOptions{any_number("low", -0.05)};  // only if reset(options=...) may set any
//     using Scalar = float;   // of the observation, as Gymnasium's API has it
//     using Action = float;   // std::int64_t for a discrete one
//     static constexpr std::size_t kObsSize = 4, kActionSize = 1;  // or, if arguments change them: members
//                                                                  // obs_size() and action_size()
//     static constexpr std::array kFaults{"..."};                  // only if a step can go wrong: see Step
//
//     struct Config { explicit Config(const Arguments&); ... };   // shared by environments with equal arguments.
//     Without static Spaces spaces(const Config&);                        // one there is nothing in the two
//     parentheses below
//
//     explicit MyTask(const Config&);
//     void reset(Random&, const double* options);                 // without options: reset(Random&)
//     Step step(const Action*, Random&);
//     template <class T> void observe(T* row) const;              // straight into the row it is given
//     void info(InfoRow) const;                                   // only if spaces() names info columns
//     void draw(Picture&) const;                                  // only if it has one: with kPictureWidth and
//                                                                 // kPictureHeight (core/picture.hpp)
//     template <class Archive> void archive(Archive&);            // names every part of the state, once; Within where
//                                                                 // another value could be harmful
//     std::string flaw() const;                                   // only if more than ranges can be wrong with a
//                                                                 // loaded state: what; empty if nothing is
//     void restored();                                            // only if something follows from a loaded state
//   };
//
// Observing is apart from stepping: a masked reset and a restored state need the observation again.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "random.hpp"
#include "table.h"

namespace raceway {

// A fault is a step that could not be computed, such as a simulation that diverged: it ends the episode, is counted,
// and its reason stands in the info. 0: none; 1: the first of the task's kFaults.
struct Step {
  double reward;
  bool terminated;
  std::uint8_t fault = 0;
};

// An option that may be any number.
constexpr raceway_option any_number(const char* name, double fallback) {
  return {name, fallback, std::numeric_limits<double>::lowest(), std::numeric_limits<double>::max()};
}

template <class T>
constexpr std::int32_t dtype_of() {
  if constexpr (std::is_same_v<T, bool>) return RACEWAY_BOOL;
  if constexpr (std::is_same_v<T, std::int8_t>) return RACEWAY_INT8;
  if constexpr (std::is_same_v<T, std::uint8_t>) return RACEWAY_UINT8;
  if constexpr (std::is_same_v<T, std::int32_t>) return RACEWAY_INT32;
  if constexpr (std::is_same_v<T, std::int64_t>) return RACEWAY_INT64;
  if constexpr (std::is_same_v<T, float>) return RACEWAY_FLOAT32;
  if constexpr (std::is_same_v<T, double>) return RACEWAY_FLOAT64;
  static_assert(std::is_same_v<T, bool> || std::is_same_v<T, std::int8_t> || std::is_same_v<T, std::uint8_t> ||
                    std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::int64_t> || std::is_same_v<T, float> ||
                    std::is_same_v<T, double>,
                "a column is of bool, int8_t, uint8_t, int32_t, int64_t, float or double");
}

constexpr std::size_t size_of(std::int32_t dtype) {
  switch (dtype) {
    case RACEWAY_INT32:
    case RACEWAY_FLOAT32:
      return 4;
    case RACEWAY_INT64:
    case RACEWAY_FLOAT64:
      return 8;
    default:
      return 1;
  }
}

inline std::size_t elements_of(const raceway_column& column) {
  std::size_t elements = 1;
  for (std::int32_t axis = 0; axis < column.ndim; ++axis) elements *= static_cast<std::size_t>(column.shape[axis]);
  return elements;
}

inline std::size_t bytes_of(const raceway_column& column) {
  return elements_of(column) * size_of(column.dtype);
}

// A column that owns its name and bounds.
struct Column {
  std::string name;
  std::int32_t dtype = RACEWAY_FLOAT64;
  std::vector<std::int64_t> shape;
  std::int32_t space = RACEWAY_BOX;
  std::int64_t discrete_n = 0;
  std::vector<double> low, high;
  std::int32_t when = RACEWAY_ALWAYS;

  raceway_column view() const {
    raceway_column column{name.c_str(), dtype, space, when, discrete_n, static_cast<std::int32_t>(shape.size()),
                          {},           {},    {}};
    if (shape.size() > std::size(column.shape)) throw std::length_error(name + " has more than four axes.");
    std::copy(shape.begin(), shape.end(), column.shape);
    if (!low.empty()) {
      column.low = low.data();
      column.high = high.data();
    }
    return column;
  }
};

template <class T>
Column box(std::vector<double> low, std::vector<double> high, std::string name = "") {
  const auto size = static_cast<std::int64_t>(low.size());
  return {std::move(name), dtype_of<T>(), {size}, RACEWAY_BOX, 0, std::move(low), std::move(high), RACEWAY_ALWAYS};
}

inline Column discrete(std::int64_t n, std::string name = "") {
  return {std::move(name), RACEWAY_INT64, {}, RACEWAY_DISCRETE, n, {}, {}, RACEWAY_ALWAYS};
}

// An info entry of one value.
template <class T>
Column entry(std::string name, raceway_when when = RACEWAY_ALWAYS) {
  return {std::move(name), dtype_of<T>(), {}, RACEWAY_BOX, 0, {}, {}, when};
}

// An info entry, or a part of the state, that is an array.
template <class T>
Column entries(std::string name, std::size_t size) {
  return {std::move(name), dtype_of<T>(), {static_cast<std::int64_t>(size)}, RACEWAY_BOX, 0, {}, {}, RACEWAY_ALWAYS};
}

struct Spaces {
  std::vector<Column> observation;
  Column action;
  std::vector<Column> info = {};
  std::int32_t container = RACEWAY_SINGLE;
  double step_s = 0.0;  // simulated seconds per step, if it has such a time
};

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// From `low` to `high`, both included; a single number is a range from itself to itself.
struct NamedRange {
  std::string name;
  double low, high;
};

// The keyword arguments of one environment, converted and named by the table's parameters.
class Arguments {
 public:
  explicit Arguments(std::span<const raceway_value> values) : values_(values) {}

  bool flag(const char* name, bool fallback) const {
    const auto* value = find(name);
    return value ? value->integer != 0 : fallback;
  }
  std::int64_t integer(const char* name, std::int64_t fallback) const {
    const auto* value = find(name);
    return value ? value->integer : fallback;
  }
  double real(const char* name, double fallback) const {
    const auto* value = find(name);
    return value ? value->real : fallback;
  }
  std::vector<double> reals(const char* name, std::vector<double> fallback) const {
    const auto* value = find(name);
    return value ? std::vector<double>(value->reals, value->reals + value->num_reals) : fallback;
  }
  std::optional<std::string> text(const char* name) const {
    const auto* value = find(name);
    return value && value->text ? std::optional<std::string>(value->text) : std::nullopt;
  }
  std::vector<NamedRange> ranges(const char* name) const {
    std::vector<NamedRange> result;
    const auto* value = find(name);
    if (!value || value->num_reals == 0) return result;
    for (const std::string& line : lines_of(value->text)) {
      const std::size_t first = 2 * result.size();
      if (first + 2 > value->num_reals) throw std::invalid_argument(std::string(name) + " has a name of two lines.");
      result.push_back({line, value->reals[first], value->reals[first + 1]});
    }
    return result;
  }

 private:
  const raceway_value* find(const char* name) const {
    for (const auto& value : values_) {
      if (std::strcmp(value.name, name) == 0) return &value;
    }
    return nullptr;
  }

  std::span<const raceway_value> values_;
};

// While one lives, configurations that are made in its thread share what they load, such as a model: it is loaded once.
class Shelf {
 public:
  Shelf() : outer_(current_) { current_ = this; }
  ~Shelf() { current_ = outer_; }
  Shelf(const Shelf&) = delete;
  Shelf& operator=(const Shelf&) = delete;

  // What is on the shelf under `key`, or what `load` makes. A key belongs to one type.
  template <class Load>
  static auto shared(const std::string& key, Load load) -> decltype(load()) {
    if (!current_) return load();
    std::shared_ptr<void>& place = current_->kept_[key];
    if (!place) place = load();
    return std::static_pointer_cast<typename decltype(load())::element_type>(place);
  }

 private:
  static inline thread_local Shelf* current_ = nullptr;
  Shelf* outer_;
  std::map<std::string, std::shared_ptr<void>> kept_;
};

// Refuses a probability outside [0, 1] in the words that every task uses.
inline double probability(const char* name, double value) {
  if (!(value >= 0.0 && value <= 1.0)) {
    throw std::invalid_argument(std::string(name) + "=" + std::to_string(value) +
                                " is not a probability. Use a number from 0 to 1.");
  }
  return value;
}

// Where one environment's info entries go: entry(column) is its first element. With a layout, whatever spaces() does
// not name so is refused: it would be written beyond its place.
class InfoRow {
 public:
  InfoRow(void* const* columns, std::size_t row, const raceway_layout* layout = nullptr)
      : columns_(columns), row_(row), layout_(layout) {}

  template <class T>
  T* entry(std::size_t column, std::size_t size = 1) const {
    if (layout_ && !is_named(column, size, dtype_of<T>())) refuse(column, size);
    return static_cast<T*>(columns_[column]) + row_ * size;
  }

 private:
  bool is_named(std::size_t column, std::size_t size, std::int32_t dtype) const {
    return column < layout_->num_info && layout_->info[column].dtype == dtype &&
           elements_of(layout_->info[column]) == size;
  }

  [[noreturn, gnu::cold, gnu::noinline]] void refuse(std::size_t column, std::size_t size) const {
    const std::string text = "info() fills column " + std::to_string(column) + ", counted from 0, with " +
                             std::to_string(size) + (size == 1 ? " number" : " numbers") + ", but spaces() names ";
    if (column >= layout_->num_info) throw std::out_of_range(text + std::to_string(layout_->num_info) + " columns.");
    const raceway_column& named = layout_->info[column];
    throw std::out_of_range(text + "'" + named.name + "' there: " + std::to_string(elements_of(named)) +
                            ", of the type that its entry<T>() or entries<T>() has.");
  }

  void* const* columns_;
  std::size_t row_;
  const raceway_layout* layout_;
};

// The three readings of Env::archive: which columns there are, writing them, reading them.
// A part of the state is a number, a std::array or a std::vector whose length the configuration fixes.
template <class T>
constexpr bool kIsNumber = std::is_arithmetic_v<T>;

// Where the numbers of a part of the state must lie, both bounds included.
struct Within {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};

class Describe {
 public:
  template <class T>
  void operator()(const char* name, T& part) {
    if constexpr (kIsNumber<T>) {
      columns.push_back(entry<T>(name));
    } else {
      columns.push_back(entries<typename T::value_type>(name, part.size()));
    }
  }
  template <class T>
  void operator()(const char* name, T& part, Within range) {
    (*this)(name, part);
    Column& column = columns.back();
    const std::size_t size = kIsNumber<T> ? 1 : static_cast<std::size_t>(column.shape[0]);
    column.low.assign(size, range.low);
    column.high.assign(size, range.high);
  }

  std::vector<Column> columns;
};

class Save {
 public:
  explicit Save(void* row) : position_(static_cast<char*>(row)) {}

  template <class T>
  void operator()(const char*, const T& part, Within = {}) {
    if constexpr (kIsNumber<T>) {
      put(&part, sizeof part);
    } else {
      put(part.data(), part.size() * sizeof(typename T::value_type));
    }
  }

 private:
  void put(const void* bytes, std::size_t size) {
    if (size > 0) std::memcpy(position_, bytes, size);  // what is empty may have no address
    position_ += size;
  }
  char* position_;
};

class Load {
 public:
  explicit Load(const void* row) : position_(static_cast<const char*>(row)) {}

  template <class T>
  void operator()(const char*, T& part) {
    if constexpr (std::is_same_v<T, bool>) {
      part = *position_++ != 0;  // any other byte than 0 and 1 in a bool is undefined behaviour
    } else if constexpr (kIsNumber<T>) {
      get(&part, sizeof part);
    } else {
      static_assert(!std::is_same_v<typename T::value_type, bool>, "keep flags as uint8_t: any byte may be loaded");
      get(part.data(), part.size() * sizeof(typename T::value_type));
    }
  }
  template <class T>
  void operator()(const char* name, T& part, Within range) {
    (*this)(name, part);
    if constexpr (kIsNumber<T>) {
      check(name, part, range);
    } else {
      for (const auto number : part) check(name, number, range);
    }
  }

  // What is outside its range; empty if nothing is.
  const std::string& flaw() const { return flaw_; }

 private:
  template <class T>
  void check(const char* name, T number, Within range) {
    const auto value = static_cast<double>(number);
    if ((value >= range.low && value <= range.high) || !flaw_.empty()) return;
    flaw_ =
        std::string(name) + " is " + written(value) + ", outside " + written(range.low) + " to " + written(range.high);
  }

  static std::string written(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.17g", value);
    return text;
  }

  void get(void* bytes, std::size_t size) {
    if (size > 0) std::memcpy(bytes, position_, size);
    position_ += size;
  }
  const char* position_;
  std::string flaw_;
};

}  // namespace raceway
