// A batch of environments: stepped all at once, or sent some actions and asked for whoever is ready.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "crew.hpp"
#include "guard.hpp"
#include "machine.hpp"
#include "rows.hpp"
#include "user_code.hpp"

namespace raceway {

// The call does not fit the state that the pool is in.
struct StateError : std::logic_error {
  using std::logic_error::logic_error;
};
// An environment must be reset first.
struct ResetNeeded : StateError {
  using StateError::StateError;
};
// The pool was closed.
struct ClosedError : StateError {
  using StateError::StateError;
};
// An environment's own code failed.
struct EnvError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// ... by writing outside its own memory: only a guarded pool notices.
struct BoundsError : EnvError {
  using EnvError::EnvError;
};

// Refuses a table of another version.
void check_table(const raceway_table& table);

// Keyword arguments made into what the table needs; environments with equal ones share it.
using Configuration = std::shared_ptr<void>;
Configuration configure(const raceway_table& table, const std::vector<raceway_value>& values);

// "environment 3 has", "environments 3 and 7 have", "environments 0, 1, 2 and 61 more have"
std::string subject(const std::vector<std::size_t>& envs);

class Pool {
 public:
  struct Settings {
    std::size_t num_envs = 1;
    std::size_t batch_size = 1;
    int workers = 0;  // 0: the CPUs this process may use
    raceway_autoreset autoreset = RACEWAY_NEXT_STEP;
    bool record_episodes = false;
    bool pin = false;
    bool guard = guards_pools();   // finds environments that write outside their own memory; slow
    const char* source = nullptr;  // the header that its environments are from, if that is a user's own
  };

  // Asked now and then by calls that may take long; they stop waiting when it is false.
  using Poll = std::function<bool()>;

  // One configuration and one step limit (0: none) per environment. Spaces must agree; the caller has checked. A pool
  // that is unfinished() has been interrupted by `poll` while it was made, and must never be used nor destroyed.
  Pool(const raceway_table& table, std::vector<Configuration> configurations, const std::vector<std::int32_t>& limits,
       Settings settings, const Poll& poll = nullptr);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  const raceway_table& table() const { return table_; }
  const raceway_layout& layout() const { return layout_; }
  const Settings& settings() const { return settings_; }
  const RowLayout& full_rows() const { return full_rows_; }
  const RowLayout& batch_rows() const { return batch_rows_; }
  // Whether memory is to come to the NUMA node of the worker that first writes it.
  bool spread_over_nodes() const { return spread_over_nodes_; }
  int workers() const { return crew_->workers(); }
  int threads() const { return crew_->threads(); }

  // Row i takes the action of environment i. Written by the caller before step() and send().
  void* actions() { return actions_.data(); }
  raceway_random& random(std::size_t env) { return random_[env]; }
  raceway_episode& episode(std::size_t env) { return episodes_[env]; }
  raceway_record& record(std::size_t env) { return records_[env]; }
  bool ignores_action(std::size_t env) const {
    return settings_.autoreset == RACEWAY_NEXT_STEP && episodes_[env].status == RACEWAY_ENDED;
  }

  // Each writes to memory laid out as full_rows(), which is filled when finish() returns; the caller takes part there.
  void check_resettable(const std::uint8_t* mask) const;
  void begin_reset(std::byte* rows, const std::uint8_t* mask, const double* options);
  void begin_step(std::byte* rows);
  // If `poll` is false, finish() is false too, and what is under way goes on: memory that it writes must stay. The next
  // call must recover() first.
  bool finish(const Poll& poll = nullptr);
  // The same for calls of environments other than steps. Given a `poll`, a user's own code runs in another thread.
  bool run_in_background(std::function<void()> work, const Poll& poll);
  bool unfinished() const { return unfinished_; }
  // Waits for what an unfinished call has left behind; every environment must then be reset. False: `poll` was.
  bool recover(const Poll& poll);
  void reset(std::byte* rows, const std::uint8_t* mask, const double* options) {
    if (in_flight() > 0) abandon();
    begin_reset(rows, mask, options);
    finish();
  }
  void step(std::byte* rows) {
    begin_step(rows);
    finish();
  }
  void observe(std::byte* rows);

  // The asynchronous side. recv writes to memory laid out as batch_rows(), by rising environment number; it is false
  // when time is up.
  // `envs` in rising order.
  void check_sendable(const std::vector<std::size_t>& envs) const;
  void send(const std::vector<std::size_t>& envs);
  void async_reset();
  // Waits for what is in flight and drops it; then all may be reset. False if `poll` was, and nothing is dropped.
  bool abandon(const Poll& poll = nullptr);
  bool recv(std::byte* rows, Clock::time_point deadline, bool others_may_send);
  std::size_t in_flight() const { return in_flight_.load(std::memory_order_acquire); }
  void require_idle(const char* call) const;

  // Long work, such as many steps: groups of so many environments, each by one thread from beginning to end. It asks
  // keep_going() at every step and leaves when that is false. `poll` is asked now and then by the calling thread, and
  // ends it all by false. Returns whether nobody ended it. Work that does not leave makes the call unfinished().
  using GroupWork = std::function<void(std::size_t first, std::size_t count)>;
  bool run_groups(std::size_t group_size, GroupWork work, const Poll& poll);
  bool keep_going();
  void give_up() { given_up_.store(true, std::memory_order_relaxed); }
  void require_ready(const char* call) const;
  std::size_t most_at_work() const { return crew_->most_at_work(kGroups); }
  double step_ns() const { return crew_->cost_ns(kStep); }  // what step() of one environment took; 0: not known
  // Makes row 0 of `batch` that of environment `first`.
  void place(raceway_batch& batch, std::size_t first);
  // The table's functions, for environments `first` to `first + count - 1` of such a batch.
  std::int64_t step_rows(const raceway_batch& batch, std::size_t first, std::size_t count, raceway_error* error) const;
  void observe_rows(const raceway_batch& batch, std::size_t first, std::size_t count) const;

  // While one lives, close() ends long work instead of finding another call inside.
  class Yielding {
   public:
    explicit Yielding(Pool& pool) : pool_(pool) { pool_.yielding_.fetch_add(1, std::memory_order_acq_rel); }
    ~Yielding() { pool_.yielding_.fetch_sub(1, std::memory_order_acq_rel); }
    Yielding(const Yielding&) = delete;
    Yielding& operator=(const Yielding&) = delete;

   private:
    Pool& pool_;
  };
  void end_long_work(const Poll& go_on);  // waits until it has left, or `go_on` is false

  // One environment's state as the table's columns have it. Only while nothing is in flight.
  std::size_t state_bytes() const { return state_bytes_; }
  void save(std::size_t env, void* row) const;
  void load(std::size_t env, const void* row);
  void states_changed();  // after load() and after writing episodes
  // The table's picture of an environment that has been reset.
  void draw(std::size_t env, std::uint8_t* pixels) const;

  // No call is taken after this, and what nobody has begun is dropped. close() waits for the threads while `go_on` is
  // true. It is false if an environment has not returned by then, and the pool must never be destroyed.
  void request_close();
  bool close(const Poll& go_on);
  bool close(Clock::time_point deadline) {
    return close([deadline] { return Clock::now() < deadline; });
  }
  bool forked() const { return forks_ != fork_count(); }
  bool closed() const { return closed_.load(std::memory_order_acquire); }

  // Held by every call: one thread at a time, though one may send while another receives.
  class Turn {
   public:
    Turn(Pool& pool, bool calls, bool receives);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    void leave();

    Pool& pool_;
    bool calls_, receives_;
  };

 private:
  enum Job : int { kConstruct, kReset, kStep, kGroups, kNumJobs };

  void work(Range range);
  void construct(Range range);
  void deliver(Range range);
  void begin_async();
  void settle();
  void look_up();
  bool wait_on();
  void begin(Job job, std::byte* rows, const std::uint8_t* mask, const double* options);
  bool enough_ready(Clock::time_point deadline, bool others_may_send);
  void note_failure(std::int64_t env, const char* text, bool outside = false);
  void raise_failure();
  std::vector<std::size_t> envs_that_are(raceway_status status) const;
  void refuse_unready(const std::vector<std::size_t>& fresh, const std::vector<std::size_t>& ended) const;
  void require_reset() const;
  void require_started() const;
  void destroy_all();
  raceway_batch bind(std::byte* base);
  std::byte* env_at(std::size_t env) const {
    return guard_ ? envs_.data() + env * guard_->stride() + guard_->margin() : envs_.data() + env * table_.env_size;
  }

  const raceway_table& table_;
  const std::vector<Configuration> configurations_;
  const raceway_layout layout_;
  const Settings settings_;
  const Crew::Settings crew_settings_;
  const bool spread_over_nodes_;
  const RowLayout full_rows_, batch_rows_;
  const std::size_t state_bytes_;
  const std::optional<Guard> guard_;
  Memory envs_, actions_;
  MemoryOf<raceway_random> random_;
  MemoryOf<raceway_episode> episodes_;
  MemoryOf<raceway_record> records_;
  std::vector<std::uint8_t> constructed_;

  raceway_batch batch_{};            // where the work under way reads and writes
  bool async_ = false;               // whether it was sent, and is delivered one by one
  std::unique_ptr<Memory> staging_;  // rows of environments that finished and were not received
  std::vector<Range> ranges_;        // what send() hands out
  std::unique_ptr<std::atomic<std::uint8_t>[]> sent_;
  std::atomic<std::size_t> in_flight_{0};  // sent and not received

  std::mutex ready_mutex_;
  std::vector<std::size_t> ready_;
  std::atomic<std::size_t> num_ready_{0};
  Signal arrived_;
  Patience recv_patience_;
  struct Failure {
    std::int64_t env;
    std::string text;
    bool outside;
  };
  std::optional<Failure> failure_;

  bool unfinished_ = false;
  std::vector<std::uint8_t> mask_;  // what the reset under way was called with
  std::vector<double> options_;

  GroupWork group_work_;
  std::size_t group_size_ = 1;
  const Poll* poll_ = nullptr;
  std::thread::id poller_;
  Clock::time_point last_look_, next_poll_;
  std::optional<Clock::time_point> gave_up_at_;
  unsigned asked_ = 0, asks_per_look_ = 1;
  std::atomic<bool> given_up_{false};
  std::atomic<int> yielding_{0};

  const int forks_;
  std::atomic<bool> all_started_{false};
  std::atomic<bool> caller_inside_{false}, receiver_inside_{false}, closed_{false};
  std::unique_ptr<Crew> crew_;  // last: its threads end before the rest goes
};

}  // namespace raceway
