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
    int workers = 1;        // threads at work at once, the caller among them while it waits
    int cpus = 1;           // more threads than this only help work that waits
    std::vector<int> pins;  // the CPU of each worker; empty: wherever the kernel puts it
  };
  using Work = std::function<void(Range)>;

  Crew(Settings settings, std::size_t num_envs, Work work);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Does the work on environments 0 to n - 1. The others begin at once, if they are worth waking; the caller takes
  // part in finish(), which returns when all is done, and can do something short in between.
  void begin(std::size_t n, Meter& meter);
  void finish();
  void run(std::size_t n, Meter& meter) {
    begin(n, meter);
    finish();
  }

  // Hands the ranges out and returns. Work that is not worth a thread is done at once, here.
  void post(const std::vector<Range>& ranges, Meter& meter);

  // Waits until nothing that was posted is unfinished.
  void drain();

  // Drops what nobody has begun and ends the threads. False if one is still in its work when `patience` is over.
  bool stop(std::chrono::nanoseconds patience);

  int workers() const { return settings_.workers; }
  int threads() const;  // started so far

 private:
  struct alignas(kCacheLine) Worker {
    Signal signal;
    std::thread thread;
    std::atomic<bool> ended{true};
  };

  std::size_t worthwhile(std::size_t n, const Meter& meter) const;
  bool help_comes(double total_ns);
  void share_out(const Meter& meter);
  std::size_t start(std::size_t first, std::size_t end);
  void serve(std::size_t index);
  void wake_from(std::size_t index);
  void wake(std::size_t index);
  std::size_t work_off(std::size_t index);
  Range next(std::size_t index);
  class Streak;
  std::size_t least_chunk() const;

  const Settings settings_;
  const Work work_;
  std::vector<Lane> lanes_;
  std::vector<Worker> workers_;
  std::atomic<std::size_t> participants_{1};
  std::atomic<Meter*> meter_{nullptr};
  std::atomic<bool> stopping_{false};

  alignas(kCacheLine) std::atomic<std::size_t> pending_{0};  // handed out and not finished
  Signal done_;
  Patience caller_patience_;

  Range unshared_;             // what finish() does alone
  std::size_t shared_ = 0;     // how many environments begin() put into lanes
  double shared_ns_ = 0.0;     // what they cost
  double help_ = 1.0;          // the share of short runs that the others did, smoothed
  unsigned skipped_runs_ = 0;  // since help was last tried
  std::size_t next_lane_ = 0;
};

}  // namespace raceway
