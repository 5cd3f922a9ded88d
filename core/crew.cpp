#include "crew.hpp"

#include <sys/resource.h>

#include <ctime>
#include <utility>

namespace raceway {
namespace {

// Waking a thread that spins costs about a microsecond, so a share below this is not worth one.
constexpr double kShareNs = 4'000;
// A chunk below this would spend its time on being handed out.
constexpr double kChunkNs = 800;
// A thread reports what it has done after about this long, or when it runs out of work.
constexpr double kReportNs = 50'000;
// Runs longer than this gain from a thread even if it has to be woken from sleep.
constexpr double kShortRunNs = 200'000;
// Below this share of help, short runs are done alone, and help is tried again after so many of them.
constexpr double kLittleHelp = 0.1;
constexpr unsigned kRetryHelp = 256;
// Work that is on its CPU for less than this share of its time waits for something.
constexpr double kWaits = 0.5;
// Runs longer than this are left to other threads by a caller that must not block.
constexpr double kLongRunNs = 50e6;

// How long this thread has been on a CPU, and how often it gave it up of its own accord.
struct CpuUse {
  double ns = 0.0;
  long waits = 0;

  static CpuUse now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return {static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec), usage.ru_nvcsw};
  }
};

double ns_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

}  // namespace

// Chunks that one thread does in a row. They are timed and reported together: a shared counter touched after each
// chunk would cost cheap environments more than their steps.
class Crew::Streak {
 public:
  Streak(Crew& crew, int job) : crew_(crew), job_(job) { begin(); }
  ~Streak() { report(); }
  Streak(const Streak&) = delete;
  Streak& operator=(const Streak&) = delete;

  void perform(Range range) {
    if (range.job != job_) {
      report();
      job_ = range.job;
      begin();
    }
    crew_.work_(range);
    count_ += range.count;
    if (!meter().trained() || static_cast<double>(count_) * meter().cost_ns() > kReportNs) {
      report();
      begin();
    }
  }

 private:
  Meter& meter() { return crew_.meters_[static_cast<std::size_t>(job_)]; }

  void begin() {
    count_ = 0;
    samples_cpu_ = meter().wants_busy();
    if (samples_cpu_) cpu_start_ = CpuUse::now();
    start_ = Clock::now();
  }

  void report() {
    if (count_ == 0) return;
    const double wall_ns = ns_since(start_);
    meter().add_cost(wall_ns / static_cast<double>(count_));
    if (samples_cpu_) meter().add_busy(busy_share(wall_ns));
    if (crew_.pending_.fetch_sub(count_, std::memory_order_acq_rel) == count_) crew_.done_.raise();
  }

  // A thread that never let go of its CPU did not wait, however long it was kept off it.
  double busy_share(double wall_ns) const {
    const CpuUse use = CpuUse::now();
    if (use.waits == cpu_start_.waits) return 1.0;
    return std::min(1.0, (use.ns - cpu_start_.ns) / std::max(wall_ns, 1.0));
  }

  Crew& crew_;
  int job_;
  std::size_t count_ = 0;
  bool samples_cpu_ = false;
  CpuUse cpu_start_;
  Clock::time_point start_;
};

Crew::Crew(Settings settings, int num_jobs, Work work)
    : settings_(std::move(settings)),
      work_(std::move(work)),
      lanes_(static_cast<std::size_t>(settings_.workers)),
      workers_(static_cast<std::size_t>(settings_.workers)),
      meters_(static_cast<std::size_t>(num_jobs)),
      caller_patience_(kSpin) {}

Crew::~Crew() {
  request_stop();
  stop(Clock::time_point::max());
}

void Crew::begin(std::size_t n, int job) {
  pending_.store(n, std::memory_order_relaxed);
  shared_ = 0;
  unshared_ = {0, n, job};
  if (meter(job).trained()) share_out(worthwhile(n, job));
}

void Crew::begin_long(std::size_t n, int job) {
  pending_.store(n, std::memory_order_relaxed);
  shared_ = 0;
  unshared_ = {0, n, job};
  share_out(meter(job).trained() ? worthwhile(n, job) : std::min(n, most_at_work(job)));
}

bool Crew::finish(const Meanwhile& meanwhile, bool all_to_others) {
  if (unshared_ && !meter(unshared_.job).trained()) {
    // Cheap environments leave no thread behind: this one ends with the work.
    if (!meanwhile) {
      learn_costs();
    } else if (!run_in_background([this] { learn_costs(); }, meanwhile)) {
      learning_abandoned_ = true;
      return false;
    }
    share_out(worthwhile(unshared_.count, unshared_.job));
  }
  std::size_t own = 0;
  if (!meanwhile || !leave_to_others(all_to_others)) {
    if (unshared_) Streak(*this, unshared_.job).perform(unshared_);
    own = shared_ > 0 ? work_off(0) : 0;
  }
  while (pending_.load(std::memory_order_acquire) > 0) {
    if (drain(meanwhile ? Clock::now() + kPollEvery : Clock::time_point::max()) || meanwhile()) continue;
    abandon();
    return false;
  }
  if (shared_ > 0 && shared_ns_ < kShortRunNs) {
    const double share = 1.0 - static_cast<double>(own) / static_cast<double>(shared_);
    help_ += (share - help_) / 16;
  }
  return true;
}

// One environment at a time until it is known what they cost.
void Crew::learn_costs() {
  while (unshared_ && !meter(unshared_.job).trained() && !abandoned_.load(std::memory_order_relaxed)) {
    Streak(*this, unshared_.job).perform({unshared_.first, 1, unshared_.job});
    unshared_ = {unshared_.first + 1, unshared_.count - 1, unshared_.job};
  }
}

bool Crew::run_in_background(std::function<void()> work, const Meanwhile& meanwhile) {
  background_.emplace(std::move(work));
  if (!background_->wait(meanwhile)) {
    abandon();
    return false;
  }
  const BackgroundTask ended = *background_;
  background_.reset();
  ended.rethrow();
  return true;
}

// Whether work that is long was given to a thread of its own, in the place of the caller.
bool Crew::leave_to_others(bool all) {
  const std::size_t count = shared_ > 0 ? shared_ : unshared_.count;
  const Meter& costs = meter(unshared_.job);
  if (!all && costs.trained() && static_cast<double>(count) * costs.cost_ns() < kLongRunNs) return false;
  if (count == 0 || start(0, 1) == 0) return false;
  if (unshared_) lanes_[0].put(unshared_);
  unshared_.count = 0;
  workers_[0].signal.raise();
  return true;
}

void Crew::abandon() {
  abandoned_.store(true, std::memory_order_relaxed);
  for (Lane& lane : lanes_) {
    if (const std::size_t dropped = lane.clear()) pending_.fetch_sub(dropped, std::memory_order_acq_rel);
  }
}

bool Crew::settle(Clock::time_point deadline) {
  if (!abandoned_.load(std::memory_order_relaxed)) return true;
  if (background_ && !background_->ended_by(deadline)) return false;
  background_.reset();
  // Only here: the learning thread may have ended by itself before it could see that it was abandoned.
  if (std::exchange(learning_abandoned_, false)) {
    pending_.fetch_sub(unshared_.count, std::memory_order_acq_rel);
    unshared_.count = 0;
  }
  if (!drain(deadline)) return false;
  abandoned_.store(false, std::memory_order_relaxed);
  return true;
}

void Crew::share_out(std::size_t parts) {
  const auto [first, count, job] = unshared_;
  shared_ns_ = meter(job).trained() ? static_cast<double>(count) * meter(job).cost_ns() : kShortRunNs;
  if (parts <= 1 || !help_comes(shared_ns_)) return;
  parts = start(1, parts);
  participants_.store(parts, std::memory_order_relaxed);
  for (std::size_t i = 0; i < parts; ++i) {
    const std::size_t low = first + count * i / parts, high = first + count * (i + 1) / parts;
    if (high > low) lanes_[i].put({low, high - low, job});
  }
  shared_ = count;
  unshared_.count = 0;
  wake_from(0);
}

void Crew::post(const std::vector<Range>& ranges) {
  std::size_t count = 0;
  for (const Range range : ranges) count += range.count;
  if (count == 0) return;
  const std::size_t unfinished = pending_.fetch_add(count, std::memory_order_relaxed) + count;
  const int job = ranges.front().job;
  const bool cheap = meter(job).trained() && static_cast<double>(count) * meter(job).cost_ns() < 2 * kShareNs;
  const std::size_t parts = cheap ? 0 : start(0, worthwhile(unfinished, job));
  if (parts == 0) {
    Streak streak(*this, job);
    for (const Range range : ranges) streak.perform(range);
    return;
  }
  participants_.store(0, std::memory_order_relaxed);  // nobody wakes others: that is done here
  // Short pieces in turn: a lane whose worker is in a long step is emptied by the others.
  const std::size_t piece = (count + parts - 1) / parts;
  std::size_t pieces = 0;
  for (Range range : ranges) {
    while (range.count > 0) {
      const std::size_t cut = std::min(range.count, piece);
      lanes_[next_lane_++ % parts].put({range.first, cut, job});
      range = {range.first + cut, range.count - cut, job};
      pieces += 1;
    }
  }
  wake_idle(parts, pieces);
}

// A worker says that it is idle before it looks into the lanes for the last time, and here the lanes are filled before
// the workers are looked at: of the two exchanges one comes second and sees what the other thread did before. Whoever
// is woken is no longer idle, so that the next post wakes another.
void Crew::wake_idle(std::size_t parts, std::size_t most) {
  for (std::size_t i = 0; i < parts && most > 0; ++i) {
    if (!workers_[i].idle.exchange(false, std::memory_order_acq_rel)) continue;
    workers_[i].signal.raise();
    most -= 1;
  }
}

bool Crew::drain(Clock::time_point deadline) {
  while (true) {
    const std::uint32_t seen = done_.now();
    if (pending_.load(std::memory_order_acquire) == 0) return true;
    if (!done_.wait(seen, caller_patience_, deadline)) return false;
  }
}

void Crew::request_stop() {
  stopping_.store(true, std::memory_order_seq_cst);
  for (Lane& lane : lanes_) {
    if (const std::size_t dropped = lane.clear()) pending_.fetch_sub(dropped, std::memory_order_acq_rel);
  }
  done_.raise();
  for (Worker& worker : workers_) worker.signal.raise();
}

// How many threads are worth it: each must get a share that outweighs its waking. Work that waits may have all
// workers; work that computes gets no more than there are CPUs.
std::size_t Crew::worthwhile(std::size_t n, int job) const {
  const Meter& costs = meters_[static_cast<std::size_t>(job)];
  const int most = costs.busy() < kWaits ? settings_.workers : std::min(settings_.workers, settings_.cpus);
  const double shares = costs.trained() ? static_cast<double>(n) * costs.cost_ns() / kShareNs : 1e6;
  return std::max<std::size_t>(
      1, std::min({static_cast<std::size_t>(most), static_cast<std::size_t>(std::min(shares, 1e6)), n}));
}

std::size_t Crew::most_at_work(int job) const {
  const Meter& costs = meters_[static_cast<std::size_t>(job)];
  const bool computes = costs.trained() && costs.busy() >= kWaits;
  return static_cast<std::size_t>(computes ? std::min(settings_.workers, settings_.cpus) : settings_.workers);
}

double Crew::cost_ns(int job) const {
  const Meter& costs = meters_[static_cast<std::size_t>(job)];
  return costs.trained() ? costs.cost_ns() : 0.0;
}

// Short runs may end before the others have come, as when those sleep between runs. Then they are left alone, and
// tried again now and then.
bool Crew::help_comes(double total_ns) {
  if (total_ns >= kShortRunNs || help_ >= kLittleHelp) return true;
  if (++skipped_runs_ < kRetryHelp) return false;
  skipped_runs_ = 0;
  help_ = 2 * kLittleHelp;  // for about ten runs: the first of them finds the others asleep
  return true;
}

// Each wakes two, so that the first is not kept waking many.
void Crew::wake_from(std::size_t index) {
  wake(2 * index + 1);
  wake(2 * index + 2);
}

void Crew::wake(std::size_t index) {
  if (index < participants_.load(std::memory_order_relaxed)) workers_[index].signal.raise();
}

// Takes and steals until nothing is left; returns how many environments that were.
std::size_t Crew::work_off(std::size_t index) {
  Range range = next(index);
  if (!range) return 0;
  std::size_t own = 0;
  Streak streak(*this, range.job);
  for (; range; range = next(index)) {
    streak.perform(range);
    own += range.count;
  }
  return own;
}

Range Crew::next(std::size_t index) {
  const auto least = [this](int job) { return least_chunk(job); };
  if (const Range range = lanes_[index].take(least)) return range;
  for (std::size_t i = 1; i < lanes_.size(); ++i) {
    const Range range = lanes_[(index + i) % lanes_.size()].steal(least);
    if (!range) continue;
    if (range.count == 1 || least(range.job) > 1) return range;
    // Where one is worth a chunk of its own, the rest of the loot can be stolen again.
    lanes_[index].put({range.first + 1, range.count - 1, range.job});
    return {range.first, 1, range.job};
  }
  return {};
}

std::size_t Crew::least_chunk(int job) const {
  const double cost_ns = meters_[static_cast<std::size_t>(job)].cost_ns();
  return cost_ns > 0 ? static_cast<std::size_t>(kChunkNs / cost_ns) + 1 : 1;
}

}  // namespace raceway
