// Over the ice from start to goal without falling into a hole; the ice may be slippery.
#pragma once

#include <algorithm>
#include <string_view>

#include "../../env.hpp"
#include "tabular.hpp"

namespace raceway {

struct FrozenLake {
  static constexpr const char* kName = "FrozenLake";
  static constexpr std::array kParameters{
      raceway_parameter{"desc", RACEWAY_LINES, "None"},
      raceway_parameter{"map_name", RACEWAY_TEXT, "'4x4'"},
      raceway_parameter{"is_slippery", RACEWAY_FLAG, "True"},
      raceway_parameter{"success_rate", RACEWAY_REAL, "1.0 / 3.0"},
      raceway_parameter{"reward_schedule", RACEWAY_REALS, "(1, 0, 0)"},
  };
  static constexpr std::array<raceway_option, 0> kOptions{};
  using Scalar = std::int64_t;
  using Action = std::int64_t;
  static constexpr std::size_t kObsSize = 1, kActionSize = 1;

  struct Config {
    explicit Config(const Arguments& arguments)
        : tiles(rows_of(map_text(arguments))),
          rows(static_cast<std::int64_t>(tiles.size())),
          columns(static_cast<std::int64_t>(tiles[0].size())),
          starts(start_marks()),
          transitions(rows * columns, 4) {
      const bool slippery = arguments.flag("is_slippery", true);
      const double success = probability("success_rate", arguments.real("success_rate", 1.0 / 3.0));
      const double failure = (1.0 - success) / 2.0;
      const auto rewards = arguments.reals("reward_schedule", {1, 0, 0});
      if (rewards.size() != 3) {
        throw std::invalid_argument("reward_schedule has " + std::to_string(rewards.size()) +
                                    " entries. It needs three: for reaching the goal, a hole, a frozen tile.");
      }
      for (std::int64_t state = 0; state < rows * columns; ++state) {
        for (std::int64_t action = 0; action < 4; ++action) {
          Outcomes& outcomes = transitions.at(state, action);
          const auto move = [&](std::int64_t direction, double chance) {
            const std::int64_t next = neighbour(state, direction);
            const char tile = tile_at(next);
            const double reward = tile == 'G' ? rewards[0] : tile == 'H' ? rewards[1] : rewards[2];
            outcomes.add(chance, next, reward, tile == 'G' || tile == 'H');
          };
          if (tile_at(state) == 'G' || tile_at(state) == 'H') {
            outcomes.add(1.0, state, 0.0, true);
          } else if (slippery) {
            move((action + 3) % 4, failure);
            move(action, success);
            move((action + 1) % 4, failure);
          } else {
            move(action, 1.0);
          }
        }
      }
    }

    std::vector<std::string> tiles;
    std::int64_t rows, columns;
    Starts starts;
    Transitions transitions;

   private:
    static std::string map_text(const Arguments& arguments) {
      if (const auto desc = arguments.text("desc")) return *desc;
      const std::string name = arguments.text("map_name").value_or("4x4");
      if (name == "4x4") return "SFFF\nFHFH\nFFFH\nHFFG";
      if (name == "8x8") return "SFFFFFFF\nFFFFFFFF\nFFFHFFFF\nFFFFFHFF\nFFFHFFFF\nFHHFFFHF\nFHFFHFHF\nFFFHFFFG";
      throw std::invalid_argument("no map '" + name + "'. Use map_name='4x4', map_name='8x8' or desc=[...].");
    }

    static std::vector<std::string> rows_of(const std::string& text) {
      std::vector<std::string> lines = lines_of(text);
      for (const auto& line : lines) {
        if (line.empty() || line.size() != lines[0].size()) {
          throw std::invalid_argument("the rows of desc differ in length or are empty. Give rows of equal length.");
        }
      }
      return lines;
    }

    std::vector<bool> start_marks() const {
      std::vector<bool> marks;
      for (const auto& line : tiles) {
        for (const char tile : line) marks.push_back(tile == 'S');
      }
      if (std::find(marks.begin(), marks.end(), true) == marks.end()) {
        throw std::invalid_argument("desc has no start. Mark one tile or more with 'S'.");
      }
      return marks;
    }

    char tile_at(std::int64_t state) const {
      return tiles[static_cast<std::size_t>(state / columns)][static_cast<std::size_t>(state % columns)];
    }

    // Left, down, right, up; the border holds.
    std::int64_t neighbour(std::int64_t state, std::int64_t direction) const {
      std::int64_t row = state / columns, column = state % columns;
      if (direction == 0) column = std::max<std::int64_t>(column - 1, 0);
      if (direction == 1) row = std::min(row + 1, rows - 1);
      if (direction == 2) column = std::min(column + 1, columns - 1);
      if (direction == 3) row = std::max<std::int64_t>(row - 1, 0);
      return row * columns + column;
    }
  };

  static Spaces spaces(const Config& config) {
    return {{discrete(config.rows * config.columns)}, discrete(4), {entry<double>("prob")}};
  }

  explicit FrozenLake(const Config& config) : config_(&config) {}

  void reset(Random& random, const double*) {
    state_ = config_->starts.draw(random);
    probability_ = 1.0;
    last_action_ = -1;
  }

  Step step(const Action* action, Random& random) {
    const Outcome& outcome = config_->transitions.at(state_, *action).draw(random);
    state_ = outcome.state;
    probability_ = outcome.probability;
    last_action_ = *action;
    return {outcome.reward, outcome.terminated};
  }

  template <class T>
  void observe(T* row) const {
    *row = static_cast<T>(state_);
  }

  void info(InfoRow row) const { *row.entry<double>(0) = probability_; }

  template <class Archive>
  void archive(Archive& archive) {
    archive("state", state_, Within{0, static_cast<double>(config_->rows * config_->columns - 1)});
    archive("probability", probability_);
    archive("last_action", last_action_, Within{-1, 3});
  }

 private:
  const Config* config_;
  std::int64_t state_ = 0;
  double probability_ = 1.0;
  std::int64_t last_action_ = -1;  // for drawing
};

}  // namespace raceway
