// Blackjack from an endless deck (Sutton and Barto, example 5.1).
#pragma once

#include <algorithm>

#include "../../env.hpp"

namespace raceway {

struct Blackjack {
  static constexpr const char* kName = "Blackjack";
  static constexpr std::array kParameters{raceway_parameter{"natural", RACEWAY_FLAG, "False"},
                                          raceway_parameter{"sab", RACEWAY_FLAG, "True"}};
  static constexpr std::array<raceway_option, 0> kOptions{};
  using Scalar = std::int64_t;
  using Action = std::int64_t;
  static constexpr std::size_t kObsSize = 3, kActionSize = 1;

  struct Config {
    explicit Config(const Arguments& arguments)
        : natural(arguments.flag("natural", false)), sab(arguments.flag("sab", true)) {}
    bool natural, sab;
  };

  static Spaces spaces(const Config&) {
    return {{discrete(32), discrete(11), discrete(2)}, discrete(2), {}, RACEWAY_TUPLE};
  }

  explicit Blackjack(const Config& config) : config_(config) {}

  void reset(Random& random, const double*) {
    upcard_ = draw_card(random);
    dealer_ = Hand{};
    dealer_.add(upcard_);
    dealer_.add(draw_card(random));
    player_ = Hand{};
    player_.add(draw_card(random));
    player_.add(draw_card(random));
    // What is only drawn on the screen still takes numbers from the stream.
    suit_ = random.below(4);
    face_ = upcard_ == 10 ? random.below(3) : 0;
  }

  Step step(const Action* action, Random& random) {
    if (*action == 1) {
      player_.add(draw_card(random));
      return player_.total() > 21 ? Step{-1.0, true} : Step{0.0, false};
    }
    while (dealer_.total() < 17) dealer_.add(draw_card(random));
    const std::int64_t ours = player_.score(), theirs = dealer_.score();
    double reward = ours > theirs ? 1.0 : ours < theirs ? -1.0 : 0.0;
    if (config_.sab && player_.natural() && !dealer_.natural()) {
      reward = 1.0;
    } else if (!config_.sab && config_.natural && player_.natural() && reward == 1.0) {
      reward = 1.5;
    }
    return {reward, true};
  }

  template <class T>
  void observe(T* row) const {
    row[0] = static_cast<T>(player_.total());
    row[1] = static_cast<T>(upcard_);
    row[2] = static_cast<T>(player_.usable_ace());
  }

  template <class Archive>
  void archive(Archive& archive) {
    player_.archive(archive, "player_sum", "player_aces", "player_cards");
    dealer_.archive(archive, "dealer_sum", "dealer_aces", "dealer_cards");
    archive("upcard", upcard_, Within{0, 10});
    archive("suit", suit_, Within{0, 3});
    archive("face", face_, Within{0, 2});
  }

 private:
  // Cards matter only by their sum, whether there is an ace, and whether the first two are a natural.
  struct Hand {
    std::int64_t sum = 0, aces = 0, cards = 0;

    void add(std::int64_t card) {
      sum += card;
      aces += card == 1;
      cards += 1;
    }
    bool usable_ace() const { return aces > 0 && sum + 10 <= 21; }
    std::int64_t total() const { return usable_ace() ? sum + 10 : sum; }
    std::int64_t score() const { return total() > 21 ? 0 : total(); }
    bool natural() const { return cards == 2 && aces == 1 && sum == 11; }

    template <class Archive>
    void archive(Archive& archive, const char* sum_name, const char* aces_name, const char* cards_name) {
      // Nobody draws on more than 21. A hand far below zero would be drawn to for ever.
      archive(sum_name, sum, Within{0, 31});
      archive(aces_name, aces, Within{0, 31});
      archive(cards_name, cards, Within{0, 31});
    }
  };

  // Ace to nine, and four cards that count ten.
  static std::int64_t draw_card(Random& random) { return std::min<std::int64_t>(random.below(13) + 1, 10); }

  Config config_;
  Hand player_, dealer_;
  std::int64_t upcard_ = 0;
  std::int64_t suit_ = 0, face_ = 0;  // of the dealer's upcard, for drawing
};

}  // namespace raceway
