// Worker threads that share out ranges of environments, and the decision how many of them are worth waking.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "background.hpp"
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

  // Jobs are numbered from 0 and each has its own costs.
  Crew(Settings settings, int num_jobs, Work work);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Does a job on environments 0 to n - 1. The others begin at once, if they are worth waking; the caller takes part in
  // finish(), which returns when all is done, and can do something short in between.
  void begin(std::size_t n, int job);
  // The same for work of which one piece is worth a thread. Until it is known whether it waits, all workers take part.
  void begin_long(std::size_t n, int job);
  // `meanwhile`, if any, is called every now and then, and ends the waiting by false: finish() then is false too, what
  // nobody has begun is dropped, and the rest goes on until settle(). So that it is called in time, the caller leaves
  // work that is long, or that may be, to others; with `all_to_others` all of it.
  using Meanwhile = std::function<bool()>;
  bool finish(const Meanwhile& meanwhile = nullptr, bool all_to_others = false);
  // Does something else in a thread of its own, for a caller that must not block. False as finish() is: then the work
  // goes on until settle(), and what it uses must stay. Throws what the work throws.
  bool run_in_background(std::function<void()> work, const Meanwhile& meanwhile);
  // Waits for what an unfinished call has left behind; false if it takes longer.
  bool settle(Clock::time_point deadline);
  void run(std::size_t n, int job) {
    begin(n, job);
    finish();
  }

  // Hands out ranges of one job and returns. What is not worth a thread is done at once, here.
  void post(const std::vector<Range>& ranges);

  // Waits until nothing that was posted is unfinished; false if it takes longer.
  bool drain(Clock::time_point deadline = Clock::time_point::max());

  // Drops what nobody has begun and tells the threads to end; stop() waits for them. It is false if one is still in its
  // work at the deadline: that thread is left alone, and what it uses must stay, this crew included.
  void request_stop();
  bool stop(Clock::time_point deadline);

  int workers() const { return settings_.workers; }
  // How many of them may be at work at once on a job: all if it waits, or if that is not known yet.
  std::size_t most_at_work(int job) const;
  // Nanoseconds per environment; 0: not known yet.
  double cost_ns(int job) const;
  int threads() const { return threads_.load(std::memory_order_relaxed); }  // started so far

 private:
  struct alignas(kCacheLine) Worker {
    Signal signal;
    std::thread thread;
    std::atomic<bool> idle{false};
    std::atomic<bool> ended{true};
  };
  class Streak;

  static constexpr std::chrono::microseconds kSpin{100};

  Meter& meter(int job) { return meters_[static_cast<std::size_t>(job)]; }
  std::size_t worthwhile(std::size_t n, int job) const;
  bool help_comes(double total_ns);
  void share_out(std::size_t parts);
  void learn_costs();
  bool leave_to_others(bool all);
  void abandon();
  static bool ends_by(Worker& worker, Clock::time_point deadline);
  std::size_t start(std::size_t first, std::size_t end);
  void serve(std::size_t index);
  void wake_from(std::size_t index);
  void wake(std::size_t index);
  void wake_idle(std::size_t parts, std::size_t most);
  std::size_t work_off(std::size_t index);
  Range next(std::size_t index);
  std::size_t least_chunk(int job) const;

  const Settings settings_;
  const Work work_;
  std::vector<Lane> lanes_;
  std::vector<Worker> workers_;
  std::optional<BackgroundTask> background_;  // work of unknown cost, in the caller's place
  std::atomic<bool> abandoned_{false};
  bool learning_abandoned_ = false;  // the rest of unshared_ is dropped by settle()
  std::vector<Meter> meters_;
  std::atomic<std::size_t> participants_{0};  // of the run under way
  std::atomic<bool> stopping_{false};
  std::atomic<int> threads_{0};

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
