#include "pool.hpp"

#include <algorithm>
#include <thread>

namespace raceway {
namespace {

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
           const std::vector<std::int32_t>& limits, Settings settings, const Poll& poll)
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
      guard_(settings.guard ? std::optional<Guard>(std::in_place, table, layout_) : std::nullopt),
      envs_(settings.num_envs * (guard_ ? guard_->stride() : table.env_size), !spread_over_nodes_),
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
  if (guard_) guard_->surround(envs_.data(), settings_.num_envs);
  ranges_.reserve(settings_.num_envs);
  ready_.reserve(settings_.num_envs);
  try {
    crew_->begin(settings_.num_envs, kConstruct);
    finish(poll);
  } catch (...) {
    destroy_all();
    throw;
  }
}

Pool::~Pool() {
  close(Clock::time_point::max());
}

void Pool::destroy_all() {
  const UserCodeScope scope(settings_.source);
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
  if (mask) mask_.assign(mask, mask + settings_.num_envs);
  if (options) options_.assign(options, options + table_.num_options);
  begin(kReset, rows, mask ? mask_.data() : nullptr, options ? options_.data() : nullptr);
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
  observe_rows(batch, 0, settings_.num_envs);
}

void Pool::begin(Job job, std::byte* rows, const std::uint8_t* mask, const double* options) {
  settle();
  batch_ = bind(rows);
  batch_.reset_mask = mask;
  batch_.options = options;
  crew_->begin(settings_.num_envs, job);
}

bool Pool::finish(const Poll& poll) {
  unfinished_ = !crew_->finish(poll);
  if (!unfinished_) raise_failure();
  return !unfinished_;
}

bool Pool::run_in_background(std::function<void()> work, const Poll& poll) {
  if (!poll || !settings_.source) {
    work();
    return true;
  }
  unfinished_ = !crew_->run_in_background(std::move(work), poll);
  return !unfinished_;
}

bool Pool::recover(const Poll& poll) {
  if (!unfinished_) return true;
  while (!crew_->settle(Clock::now() + kPollEvery)) {
    if (poll && !poll()) return false;
  }
  unfinished_ = false;
  const std::lock_guard lock(ready_mutex_);
  failure_.reset();
  for (raceway_episode& episode : episodes_) episode.status = RACEWAY_FRESH;
  all_started_ = false;
  return true;
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
  batch.envs = env_at(0);
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
      group_work_(first, std::min(group_size_, settings_.num_envs - first));
    }
    return;
  }
  const UserCodeScope scope(settings_.source);
  raceway_error error;  // only its first byte is made: all of it for every chunk would cost too much
  error.text[0] = '\0';
  const auto call = range.job == kReset ? table_.reset : table_.step;
  bool outside = false;
  const std::int64_t failed = guard_ ? guard_->call(call, batch_, range.first, range.count, &error, &outside)
                                     : call(&batch_, range.first, range.count, &error);
  if (failed >= 0) note_failure(failed, error.text, outside);
  if (async_) deliver(range);
}

void Pool::construct(Range range) {
  const UserCodeScope scope(settings_.source);
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
void Pool::note_failure(std::int64_t env, const char* text, bool outside) {
  const std::lock_guard lock(ready_mutex_);
  all_started_ = false;
  if (!failure_ || env < failure_->env) failure_ = Failure{env, text, outside};
}

void Pool::raise_failure() {
  const std::lock_guard lock(ready_mutex_);
  if (!failure_) return;
  const Failure failure = std::move(*failure_);
  failure_.reset();
  const std::string text = "environment " + std::to_string(failure.env) + " of " + table_.name +
                           " failed: " + failure.text + ". The others went on; reset it before its next step.";
  if (failure.outside) throw BoundsError(text);
  throw EnvError(text);
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
  const UserCodeScope scope(settings_.source);
  if (!guard_) {
    table_.save(env_at(env), row);
    return;
  }
  const std::string flaw = guard_->save(env_at(env), row, state_bytes_);
  if (!flaw.empty())
    throw BoundsError("environment " + std::to_string(env) + " of " + table_.name + " failed: " + flaw + ".");
}

void Pool::load(std::size_t env, const void* row) {
  const UserCodeScope scope(settings_.source);
  raceway_error error{};
  if (table_.load(env_at(env), row, &error) != 0) {
    throw std::invalid_argument("the state of environment " + std::to_string(env) + " is refused: " + error.text + ".");
  }
}

void Pool::draw(std::size_t env, std::uint8_t* pixels) const {
  const UserCodeScope scope(settings_.source);
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

bool Pool::close(const Poll& go_on) {
  request_close();
  while (!crew_->stop(Clock::now() + kPollEvery)) {
    if (!go_on()) return false;
  }
  if (settings_.source) return crew_->run_in_background([this] { destroy_all(); }, go_on);
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
