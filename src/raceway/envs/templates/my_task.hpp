// A puck is pushed along a track and shall come to rest at a mark.
//
//   raceway train my_task.hpp
//
// This file is compiled when it is used, and again when it has changed. What else an environment may have stands at the
// top of raceway/env.hpp, and in the documentation: own-native-environment.md.
#pragma once

#include <algorithm>
#include <cmath>
#include <raceway/native.hpp>

using namespace raceway;

struct MyTask {
  // What an observation is made of, and what an action is: std::int64_t for a choice, float for forces and the like.
  using Scalar = float;
  using Action = std::int64_t;
  static constexpr std::size_t kObsSize = 3, kActionSize = 1;

  // Keyword arguments, with their defaults: raceway train my_task.hpp --env.push 3
  static constexpr std::array kParameters{raceway_parameter{"push", RACEWAY_REAL, "2.0"}};

  // What environments with the same arguments share. Arguments that make no sense are refused here.
  struct Config {
    explicit Config(const Arguments& arguments) : push(arguments.real("push", 2.0)) {
      if (push <= 0.0) throw std::invalid_argument("push=" + std::to_string(push) + " is not a force. Use one above 0.");
    }
    double push;
  };

  // Observed are where the puck is, how fast, and how far from the mark. Actions push it to the left, not, to the right.
  static Spaces spaces(const Config&) {
    return {.observation = {box<float>({-2, -9, -4}, {2, 9, 4})}, .action = discrete(3), .step_s = kSeconds};
  }

  explicit MyTask(const Config& config) : push_(config.push) {}

  // Begins an episode. Random numbers come from `random` alone: then the same seed gives the same episodes.
  void reset(Random& random) {
    place_ = random.uniform(-1.0, 1.0);
    mark_ = random.uniform(-1.0, 1.0);
    speed_ = 0.0;
  }

  // Returns the reward, and whether the episode has come to its end: here, when the puck is off the track.
  Step step(const Action* action, Random&) {
    const double force = push_ * static_cast<double>(*action - 1);
    speed_ += (force - 0.5 * speed_) * kSeconds;
    place_ += speed_ * kSeconds;
    const bool is_off = std::abs(place_) > kEnd;
    return {is_off ? -10.0 : 1.0 - std::abs(mark_ - place_), is_off};
  }

  // Writes the observation as it is now.
  void observe(Scalar* row) const {
    row[0] = static_cast<Scalar>(place_);
    row[1] = static_cast<Scalar>(speed_);
    row[2] = static_cast<Scalar>(mark_ - place_);
  }

  // Every part of the state, by name: a run that was stopped goes on from it to the bit.
  template <class Archive>
  void archive(Archive& archive) {
    archive("place", place_);
    archive("speed", speed_);
    archive("mark", mark_);
  }

  // What `raceway play` shows. It may be left out.
  static constexpr int kPictureWidth = 480, kPictureHeight = 120;
  void draw(Picture& picture) const {
    const auto at = [&](double place) { return (place / kEnd + 1.0) * picture.width() / 2; };
    picture.fill({250, 250, 250});
    picture.rectangle(0, 80, picture.width(), 84, {60, 60, 60});
    picture.rectangle(at(mark_) - 2, 50, at(mark_) + 2, 80, {220, 60, 50});
    picture.disc(at(place_), 68, 12, {40, 110, 200});
  }

 private:
  static constexpr double kSeconds = 0.05, kEnd = 1.5;

  double place_ = 0.0, speed_ = 0.0, mark_ = 0.0;
  double push_;
};

// The struct, its id, and after how many steps an episode is cut off (0: never).
RACEWAY_ENV(MyTask, "MyTask-v0", 100)
