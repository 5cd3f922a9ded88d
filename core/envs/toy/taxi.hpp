// Fetch a passenger and bring them to their destination (Dietterich 2000), on a 5 by 5 grid with walls.
#pragma once

#include <algorithm>

#include "../../env.hpp"
#include "tabular.hpp"

namespace raceway {

// Version 3 and 4 differ in the rain only: how far it drifts past walls, and that 4 takes its probabilities.
template <int Version>
struct Taxi {
  static constexpr const char* kName = "Taxi";
  static constexpr auto kParameters = [] {
    if constexpr (Version == 3) {
      return std::array{raceway_parameter{"is_rainy", RACEWAY_FLAG, "False"},
                        raceway_parameter{"fickle_passenger", RACEWAY_FLAG, "False"}};
    } else {
      return std::array{raceway_parameter{"is_rainy", RACEWAY_FLAG, "False"},
                        raceway_parameter{"fickle_passenger", RACEWAY_FLAG, "False"},
                        raceway_parameter{"rainy_probability", RACEWAY_REAL, "0.8"},
                        raceway_parameter{"fickle_probability", RACEWAY_REAL, "0.3"}};
    }
  }();
  static constexpr std::array<raceway_option, 0> kOptions{};
  using Scalar = std::int64_t;
  using Action = std::int64_t;
  static constexpr std::size_t kObsSize = 1, kActionSize = 1;
  static constexpr std::int64_t kStates = 500, kActions = 6, kInTaxi = 4;

  // A state counts row, column, passenger (0 to 3 at a place, 4 in the taxi) and destination, the last one fastest.
  struct Place {
    std::int64_t row, column;
    bool operator==(const Place&) const = default;
  };
  struct Scene {
    Place taxi;
    std::int64_t passenger, destination;
  };
  static constexpr std::array<Place, 4> kPlaces{Place{0, 0}, Place{0, 4}, Place{4, 0}, Place{4, 3}};

  static constexpr std::int64_t encode(const Scene& scene) {
    return ((scene.taxi.row * 5 + scene.taxi.column) * 5 + scene.passenger) * 4 + scene.destination;
  }
  static constexpr Scene decode(std::int64_t state) {
    return {{state / 100, state / 20 % 5}, state / 4 % 5, state % 4};
  }

  struct Config {
    explicit Config(const Arguments& arguments)
        : fickle(arguments.flag("fickle_passenger", false)),
          fickle_chance(probability("fickle_probability", arguments.real("fickle_probability", 0.3))),
          starts(start_marks()),
          transitions(kStates, kActions) {
      const bool rainy = arguments.flag("is_rainy", false);
      const double straight = probability("rainy_probability", arguments.real("rainy_probability", 0.8));
      const double sideways = Version == 3 ? 0.1 : (1.0 - straight) / 2.0;
      for (std::int64_t state = 0; state < kStates; ++state) {
        const Scene scene = decode(state);
        for (std::int64_t action = 0; action < 4; ++action) {
          Outcomes& outcomes = transitions.at(state, action);
          const auto add = [&](double chance, Place place) {
            outcomes.add(chance, encode({place, scene.passenger, scene.destination}), -1.0, false);
          };
          if (rainy) {
            const auto [ahead, left, right] = drift(scene.taxi, action);
            add(straight, ahead);
            add(sideways, left);
            add(sideways, right);
          } else {
            add(1.0, open(scene.taxi, action) ? towards(scene.taxi, action) : scene.taxi);
          }
        }
        add_pickup(state, scene);
        add_dropoff(state, scene);
      }
    }

    bool fickle;
    double fickle_chance;
    Starts starts;
    Transitions transitions;

   private:
    static std::vector<bool> start_marks() {
      std::vector<bool> marks;
      for (std::int64_t state = 0; state < kStates; ++state) {
        const Scene scene = decode(state);
        marks.push_back(scene.passenger < kInTaxi && scene.passenger != scene.destination);
      }
      return marks;
    }

    // The taxi ahead, to its left and to its right of the intended direction (0 south, 1 north, 2 east, 3 west).
    static std::array<Place, 3> drift(Place taxi, std::int64_t action) {
      constexpr std::int64_t kSides[2][4][2] = {{{3, 2}, {3, 2}, {0, 1}, {0, 1}}, {{2, 3}, {3, 2}, {1, 0}, {0, 1}}};
      const bool blocked = Version == 3 ? action > 1 && !open(taxi, action) : !open(taxi, action);
      if (blocked) return {taxi, taxi, taxi};
      const auto& sides = kSides[Version == 3 ? 0 : 1][action];
      return {towards(taxi, action), drifted(taxi, sides[0], 2), drifted(taxi, sides[1], 0)};
    }

    // Version 3 looks at one letter of the map beside the target, whatever the direction; version 4 at the wall
    // between, and only on the way east and west.
    static Place drifted(Place taxi, std::int64_t direction, std::int64_t offset) {
      const Place target = towards(taxi, direction);
      if constexpr (Version == 3) {
        return letter(target.row, 2 * target.column + offset) == ':' ? target : taxi;
      } else {
        if (direction == 2 && letter(target.row, 2 * target.column) != ':') return taxi;
        if (direction == 3 && letter(target.row, 2 * target.column + 2) != ':') return taxi;
        return target;
      }
    }

    void add_pickup(std::int64_t state, const Scene& scene) {
      const bool there = scene.passenger < kInTaxi && scene.taxi == kPlaces[static_cast<std::size_t>(scene.passenger)];
      const std::int64_t passenger = there ? kInTaxi : scene.passenger;
      transitions.at(state, 4).add(1.0, encode({scene.taxi, passenger, scene.destination}), there ? -1.0 : -10.0,
                                   false);
    }

    void add_dropoff(std::int64_t state, const Scene& scene) {
      Outcomes& outcomes = transitions.at(state, 5);
      const auto place = std::find(kPlaces.begin(), kPlaces.end(), scene.taxi);
      if (scene.passenger != kInTaxi || place == kPlaces.end()) {
        outcomes.add(1.0, state, -10.0, false);
        return;
      }
      const std::int64_t passenger = place - kPlaces.begin();
      const bool arrived = passenger == scene.destination;
      outcomes.add(1.0, encode({scene.taxi, passenger, scene.destination}), arrived ? 20.0 : -1.0, arrived);
    }
  };

  static Spaces spaces(const Config&) {
    return {{discrete(kStates)}, discrete(kActions), {entry<double>("prob"), entries<std::int8_t>("action_mask", 6)}};
  }

  explicit Taxi(const Config& config) : config_(&config) {}

  void reset(Random& random, const double*) {
    state_ = config_->starts.draw(random);
    probability_ = 1.0;
    last_action_ = -1;
    may_change_mind_ = config_->fickle && random.uniform() < config_->fickle_chance;
  }

  Step step(const Action* action, Random& random) {
    const Outcome& outcome = config_->transitions.at(state_, *action).draw(random);
    const Scene before = decode(state_);
    Scene after = decode(outcome.state);
    if (may_change_mind_ && before.passenger == kInTaxi && !(after.taxi == before.taxi)) {
      may_change_mind_ = false;
      const std::int64_t other = random.below(3);
      after.destination = other < before.destination ? other : other + 1;
    }
    state_ = encode(after);
    probability_ = outcome.probability;
    last_action_ = *action;
    return {outcome.reward, outcome.terminated};
  }

  template <class T>
  void observe(T* row) const {
    *row = static_cast<T>(state_);
  }

  // The mask marks the actions that change the state.
  void info(InfoRow row) const {
    *row.entry<double>(0) = probability_;
    const Scene scene = decode(state_);
    auto* mask = row.entry<std::int8_t>(1, 6);
    for (std::int64_t action = 0; action < 4; ++action) mask[action] = open(scene.taxi, action);
    const auto place = std::find(kPlaces.begin(), kPlaces.end(), scene.taxi);
    mask[4] = place - kPlaces.begin() == scene.passenger && place != kPlaces.end();
    mask[5] = scene.passenger == kInTaxi && place != kPlaces.end();
  }

  template <class Archive>
  void archive(Archive& archive) {
    archive("state", state_, Within{0, kStates - 1});
    archive("probability", probability_);
    archive("last_action", last_action_, Within{-1, kActions - 1});
    archive("may_change_mind", may_change_mind_);
  }

 private:
  static constexpr const char* kMap[5] = {"|R: | : :G|", "| : | : : |", "| : : : : |", "| | : | : |", "|Y| : |B: |"};

  static constexpr char letter(std::int64_t row, std::int64_t column) { return kMap[row][column]; }

  static constexpr bool open(Place taxi, std::int64_t direction) {
    if (direction == 0) return taxi.row < 4;
    if (direction == 1) return taxi.row > 0;
    return letter(taxi.row, 2 * taxi.column + (direction == 2 ? 2 : 0)) == ':';
  }

  static constexpr Place towards(Place taxi, std::int64_t direction) {
    if (direction == 0) return {std::min<std::int64_t>(taxi.row + 1, 4), taxi.column};
    if (direction == 1) return {std::max<std::int64_t>(taxi.row - 1, 0), taxi.column};
    if (direction == 2) return {taxi.row, std::min<std::int64_t>(taxi.column + 1, 4)};
    return {taxi.row, std::max<std::int64_t>(taxi.column - 1, 0)};
  }

  const Config* config_;
  std::int64_t state_ = 0;
  double probability_ = 1.0;
  std::int64_t last_action_ = -1;  // for drawing
  bool may_change_mind_ = false;
};

}  // namespace raceway
