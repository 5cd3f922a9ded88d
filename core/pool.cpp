#include "pool.hpp"

#include <algorithm>
#include <thread>

namespace raceway {
namespace {

constexpr std::chrono::milliseconds kPoll{50};

Crew::Settings crew_settings(const Pool::Settings& settings) {
  Crew::Settings crew;
  crew.cpus = usable_cpus();
  crew.workers = settings.workers > 0 ? settings.workers : crew.cpus;
  crew.workers = std::min(crew.workers, static_cast<int>(settings.num_envs));
  if (settings.pin) crew.pins = pinning(allowed_cpus(), Topology(), crew.workers);
  return crew;
}

std::size_t row_bytes(const raceway_column* columns, std::size_t count) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) bytes += bytes_of(columns[i]);
  return bytes;
}

}  // namespace

std::string subject(const std::vector<std::size_t>& envs) {
  std::string text = envs.size() == 1 ? "environment " : "environments ";
  const std::size_t shown = std::min<std::size_t>(envs.size(), 3);
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) text += i + 1 == envs.size() ? " and " : ", ";
    text += std::to_string(envs[i]);
  }
  if (envs.size() > shown) text += " and " + std::to_string(envs.size() - shown) + " more";
  return text + (envs.size() == 1 ? " has" : " have");
}

void check_table(const raceway_table& table) {
  const bool current = table.version == RACEWAY_TABLE_VERSION && table.table_size == sizeof(raceway_table);
  if (current && table.env_align <= 4096 && table.env_size % table.env_align == 0) return;
  throw std::invalid_argument("the environment was compiled against version " + std::to_string(table.version) +
                              " of raceway's table, this is version " + std::to_string(RACEWAY_TABLE_VERSION) +
                              "; or its size and alignment do not fit. Compile it again.");
}

Configuration configure(const raceway_table& table, const std::vector<raceway_value>& values) {
  check_table(table);
  raceway_error error{};
  void* made = table.configure(values.data(), values.size(), &error);
  if (!made) throw std::invalid_argument(std::string(table.name) + ": " + error.text);
  return {made, table.release};
}

Pool::Pool(const raceway_table& table, std::vector<Configuration> configurations,
           const std::vector<std::int32_t>& limits, Settings settings)
    : table_(table),
      configurations_(std::move(configurations)),
      layout_(*table.layout(configurations_.at(0).get())),
      settings_(settings),
      crew_settings_(crew_settings(settings)),
      spread_over_nodes_(settings.pin && Topology().num_nodes() > 1),
      full_rows_(layout_, settings.num_envs,
                 {settings.autoreset == RACEWAY_SAME_STEP, settings.record_episodes, false}),
      batch_rows_(layout_, settings.batch_size,
                  {settings.autoreset == RACEWAY_SAME_STEP, settings.record_episodes, true}),
      state_bytes_(row_bytes(layout_.state, layout_.num_state)),
      envs_(settings.num_envs * table.env_size, !spread_over_nodes_),
      actions_(settings.num_envs * bytes_of(layout_.action), !spread_over_nodes_),
      random_(settings.num_envs, !spread_over_nodes_),
      episodes_(settings.num_envs, !spread_over_nodes_),
      records_(settings.num_envs, !spread_over_nodes_),
      constructed_(settings.num_envs, 0),
      sent_(std::make_unique<std::atomic<std::uint8_t>[]>(settings.num_envs)),
      recv_patience_(std::chrono::microseconds(100)),
      forks_(fork_count()),
      crew_(std::make_unique<Crew>(crew_settings_, kNumJobs, [this](Range range) { work(range); })) {
  if (spread_over_nodes_) {
    spread({&envs_, &actions_, &random_.memory(), &episodes_.memory(), &records_.memory()}, crew_settings_.pins);
  }
  for (std::size_t i = 0; i < settings_.num_envs; ++i) episodes_[i].limit = limits[i];
  ranges_.reserve(settings_.num_envs);
  ready_.reserve(settings_.num_envs);
  try {
    crew_->run(settings_.num_envs, kConstruct);
    raise_failure();
  } catch (...) {
    destroy_all();
    throw;
  }
}

Pool::~Pool() {
  close(Clock::time_point::max());
}

void Pool::destroy_all() {
  for (std::size_t i = 0; i < settings_.num_envs; ++i) {
    if (constructed_[i]) table_.destroy(env_at(i));
    constructed_[i] = 0;
  }
}

// --- synchronous calls

void Pool::check_resettable(const std::uint8_t* mask) const {
  if (!mask || all_started_) return;
  std::vector<std::size_t> left_out = envs_that_are(RACEWAY_FRESH);
  std::erase_if(left_out, [mask](std::size_t env) { return mask[env] != 0; });
  if (left_out.empty()) return;
  throw ResetNeeded("reset_mask leaves out what has no observation yet: " + subject(left_out) +
                    " not been reset. Call reset() without a mask first.");
}

void Pool::begin_reset(std::byte* rows, const std::uint8_t* mask, const double* options) {
  require_idle("reset()");
  check_resettable(mask);
  settle();
  {
    const std::lock_guard lock(ready_mutex_);
    failure_.reset();  // of an environment that was sent and whose failure nobody received
  }
  all_started_ = true;
  begin(kReset, rows, mask, options);
}

void Pool::begin_step(std::byte* rows) {
  require_idle("step()");
  require_started();
  begin(kStep, rows, nullptr, nullptr);
}

void Pool::observe(std::byte* rows) {
  require_idle("observe()");
  require_reset();
  settle();
  raceway_batch batch = bind(rows);
  batch.info = nullptr;
  table_.observe(&batch, 0, settings_.num_envs);
}

void Pool::begin(Job job, std::byte* rows, const std::uint8_t* mask, const double* options) {
  settle();
  batch_ = bind(rows);
  batch_.reset_mask = mask;
  batch_.options = options;
  crew_->begin(settings_.num_envs, job);
}

void Pool::finish() {
  crew_->finish();
  raise_failure();
}

// Ends the asynchronous phase: a worker may have delivered its last result and not yet put its tools away.
void Pool::settle() {
  if (!async_) return;
  crew_->drain();
  async_ = false;
}

raceway_batch Pool::bind(std::byte* base) {
  raceway_batch batch = full_rows_.bind(base);
  batch.layout = &layout_;
  batch.envs = envs_.data();
  batch.random = random_.data();
  batch.episodes = episodes_.data();
  batch.records = records_.data();
  batch.actions = actions_.data();
  batch.autoreset = settings_.autoreset;
  return batch;
}

// --- what the crew does

void Pool::work(Range range) {
  if (range.job == kConstruct) {
    construct(range);
    return;
  }
  if (range.job == kGroups) {
    for (std::size_t i = range.first; i < range.first + range.count; ++i) {
      const std::size_t first = i * group_size_;
      (*group_work_)(first, std::min(group_size_, settings_.num_envs - first));
    }
    return;
  }
  raceway_error error;  // only its first byte is made: all of it for every chunk would cost too much
  error.text[0] = '\0';
  const auto call = range.job == kReset ? table_.reset : table_.step;
  const std::int64_t failed = call(&batch_, range.first, range.count, &error);
  if (failed >= 0) note_failure(failed, error.text);
  if (async_) deliver(range);
}

void Pool::construct(Range range) {
  for (std::size_t i = range.first; i < range.first + range.count; ++i) {
    raceway_error error{};
    if (table_.construct(env_at(i), configurations_[i].get(), &error) == 0) {
      constructed_[i] = 1;
    } else {
      note_failure(static_cast<std::int64_t>(i), error.text);
    }
  }
}

// Of several, the one with the lowest number is told: which comes first in time depends on the threads.
void Pool::note_failure(std::int64_t env, const char* text) {
  const std::lock_guard lock(ready_mutex_);
  all_started_ = false;
  if (!failure_ || env < failure_->env) failure_ = Failure{env, text};
}

void Pool::raise_failure() {
  const std::lock_guard lock(ready_mutex_);
  if (!failure_) return;
  const Failure failure = std::move(*failure_);
  failure_.reset();
  throw EnvError("environment " + std::to_string(failure.env) + " of " + table_.name + " failed: " + failure.text +
                 ". The others went on; reset it before its next step.");
}

// --- long work

void Pool::require_ready(const char* call) const {
  require_idle(call);
  require_started();
}

void Pool::place(raceway_batch& batch, std::size_t first) {
  batch.layout = &layout_;
  batch.envs = env_at(first);
  batch.random = random_.data() + first;
  batch.episodes = episodes_.data() + first;
  batch.records = records_.data() + first;
}

bool Pool::run_groups(std::size_t group_size, const GroupWork& work, const Poll& poll) {
  settle();
  group_work_ = &work;
  group_size_ = group_size;
  poll_ = poll ? &poll : nullptr;
  poller_ = std::this_thread::get_id();
  last_look_ = Clock::now();
  next_poll_ = last_look_ + kPoll;
  asked_ = 0;
  asks_per_look_ = 1;
  given_up_.store(false, std::memory_order_relaxed);
  crew_->begin_long((settings_.num_envs + group_size - 1) / group_size, kGroups);
  crew_->finish(poll ? [this] { look_up(); } : std::function<void()>());
  poll_ = nullptr;
  return !given_up_.load(std::memory_order_relaxed) && !closed();
}

bool Pool::keep_going() {
  if (poll_ && std::this_thread::get_id() == poller_ && ++asked_ >= asks_per_look_) look_up();
  return !given_up_.load(std::memory_order_relaxed) && !closed_.load(std::memory_order_relaxed);
}

// Looking at the clock costs a cheap step too much: it is looked at about every millisecond.
void Pool::look_up() {
  const auto now = Clock::now();
  const bool soon = now - last_look_ < std::chrono::milliseconds(1);
  asks_per_look_ = soon ? std::min(2 * asks_per_look_, 1U << 16) : std::max(asks_per_look_ / 4, 1U);
  asked_ = 0;
  last_look_ = now;
  if (now < next_poll_) return;
  next_poll_ = now + kPoll;
  if (!(*poll_)()) give_up();
}

void Pool::end_long_work(Clock::time_point deadline) {
  while (yielding_.load(std::memory_order_acquire) > 0 && Clock::now() < deadline) {
    give_up();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

// --- state

std::vector<std::size_t> Pool::envs_that_are(raceway_status status) const {
  std::vector<std::size_t> envs;
  for (std::size_t i = 0; i < settings_.num_envs; ++i) {
    if (!sent_[i] && episodes_[i].status == status) envs.push_back(i);
  }
  return envs;
}

void Pool::refuse_unready(const std::vector<std::size_t>& fresh, const std::vector<std::size_t>& ended) const {
  if (!fresh.empty()) throw ResetNeeded(subject(fresh) + " not been reset. Call reset() first.");
  if (settings_.autoreset == RACEWAY_DISABLED && !ended.empty()) {
    throw ResetNeeded(subject(ended) +
                      " ended an episode and autoreset is disabled. Call reset(options={'reset_mask': terminated | "
                      "truncated}) first.");
  }
}

void Pool::require_reset() const {
  if (!all_started_) refuse_unready(envs_that_are(RACEWAY_FRESH), {});
}

void Pool::require_started() const {
  require_reset();
  if (settings_.autoreset == RACEWAY_DISABLED) refuse_unready({}, envs_that_are(RACEWAY_ENDED));
}

void Pool::require_idle(const char* call) const {
  if (const std::size_t count = in_flight()) {
    throw StateError(std::string(call) + " while " + std::to_string(count) +
                     " environments are in flight: recv() them first, or call reset() to drop them and start over.");
  }
}

void Pool::save(std::size_t env, void* row) const {
  table_.save(env_at(env), row);
}

void Pool::load(std::size_t env, const void* row) {
  raceway_error error{};
  if (table_.load(env_at(env), row, &error) != 0) {
    throw std::invalid_argument("the state of environment " + std::to_string(env) + " is refused: " + error.text + ".");
  }
}

void Pool::draw(std::size_t env, std::uint8_t* pixels) const {
  raceway_error error{};
  if (table_.draw(env_at(env), pixels, &error) == 0) return;
  throw EnvError("environment " + std::to_string(env) + " could not be drawn: " + error.text);
}

void Pool::states_changed() {
  all_started_ = std::all_of(episodes_.begin(), episodes_.end(),
                             [](const raceway_episode& episode) { return episode.status != RACEWAY_FRESH; });
}

// A thread that waits in recv() wakes, sees that the pool is closed and raises.
void Pool::request_close() {
  closed_.store(true, std::memory_order_release);
  arrived_.raise();
  crew_->request_stop();
}

bool Pool::close(Clock::time_point deadline) {
  request_close();
  if (!crew_->stop(deadline)) return false;
  destroy_all();
  return true;
}

// --- one thread at a time

Pool::Turn::Turn(Pool& pool, bool calls, bool receives) : pool_(pool), calls_(calls), receives_(receives) {
  if (pool.forked()) {
    throw StateError("this pool was made before a fork, and its threads stayed in the parent. Make it in the child.");
  }
  const char* text =
      "another call is inside this pool. It takes one at a time (one thread may send while another receives): use a "
      "lock, or one pool per thread.";
  if (calls && pool.caller_inside_.exchange(true, std::memory_order_acquire)) throw StateError(text);
  if (receives && pool.receiver_inside_.exchange(true, std::memory_order_acquire)) {
    receives_ = false;
    leave();
    throw StateError(text);
  }
  if (pool.closed()) {
    leave();
    throw ClosedError("this pool is closed. Make a new one.");
  }
}

Pool::Turn::~Turn() {
  leave();
}

void Pool::Turn::leave() {
  if (receives_) pool_.receiver_inside_.store(false, std::memory_order_release);
  if (calls_) pool_.caller_inside_.store(false, std::memory_order_release);
}

}  // namespace raceway
