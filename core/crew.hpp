// Worker threads that share out ranges of environments, and the decision how many of them are worth waking.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "lane.hpp"
#include "meter.hpp"
#include "signal.hpp"

namespace raceway {

class Crew {
 public:
  struct Settings {
    int workers = 1;          // threads at work at once, the caller among them while it waits
    int cpus = 1;             // more threads than this only help work that waits
    bool background = false;  // whether work goes on while the caller is away: then no thread is spared for it
    std::vector<int> pins;    // the CPU of each worker; empty: wherever the kernel puts it
  };
  using Work = std::function<void(Range)>;

  Crew(Settings settings, std::size_t num_envs, Work work);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Does the work on environments 0 to n - 1 and returns when it is done. The caller takes part.
  void run(std::size_t n, Meter& meter);

  // Hands the ranges out and returns. Work that is not worth a thread is done at once, here.
  void post(const std::vector<Range>& ranges, Meter& meter);

  // Waits until nothing that was posted is unfinished.
  void drain();

  // Drops what nobody has begun and ends the threads. False if one is still in its work when `patience` is over.
  bool stop(std::chrono::nanoseconds patience);

  int workers() const { return settings_.workers; }
  int threads() const { return static_cast<int>(started_); }

 private:
  struct alignas(kCacheLine) Worker {
    Signal signal;
    std::thread thread;
    std::atomic<bool> ended{true};
  };

  std::size_t worthwhile(std::size_t n, const Meter& meter) const;
  bool help_comes(double total_ns);
  void start(std::size_t workers);
  void serve(std::size_t index);
  void wake_from(std::size_t index);
  void wake(std::size_t index);
  std::size_t work_off(std::size_t index);
  Range next(std::size_t index);
  class Streak;
  void learn_help(std::size_t n, std::size_t own, double total_ns);
  std::size_t least_chunk() const;

  const Settings settings_;
  const Work work_;
  std::vector<Lane> lanes_;
  std::vector<Worker> workers_;
  std::size_t started_ = 0;
  std::atomic<std::size_t> participants_{1};
  std::atomic<Meter*> meter_{nullptr};
  std::atomic<bool> stopping_{false};

  alignas(kCacheLine) std::atomic<std::size_t> pending_{0};  // handed out and not finished
  Signal done_;
  Patience caller_patience_;

  double help_ = 1.0;          // the share of short runs that the others did, smoothed
  unsigned skipped_runs_ = 0;  // since help was last tried
  std::size_t next_lane_ = 0;
};

}  // namespace raceway
