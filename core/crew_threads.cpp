// How the threads of a crew begin, wait for work and end.
#include <sched.h>

#include "crew.hpp"

namespace raceway {

// Threads start when they are first needed: cheap environments never get any. Returns up to which number they run,
// which is less than asked for where the system gives no more.
std::size_t Crew::start(std::size_t first, std::size_t end) {
  for (std::size_t i = first; i < end; ++i) {
    if (workers_[i].thread.joinable()) continue;
    Worker& worker = workers_[i];
    worker.ended.store(false, std::memory_order_relaxed);
    try {
      worker.thread = start_thread("raceway-" + std::to_string(i), [this, i] {
        serve(i);
        workers_[i].ended.store(true, std::memory_order_release);
      });
      threads_.fetch_add(1, std::memory_order_relaxed);
    } catch (const std::exception&) {
      worker.ended.store(true, std::memory_order_relaxed);
      return i;
    }
  }
  return end;
}

void Crew::serve(std::size_t index) {
  if (index < settings_.pins.size()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(settings_.pins[index]), &set);
    sched_setaffinity(0, sizeof set, &set);  // refused: stays where it is
  }
  // Spinning beside more threads than CPUs would take time from the one that is waited for.
  Patience patience(index < static_cast<std::size_t>(settings_.cpus) ? kSpin : std::chrono::microseconds(0));
  while (true) {
    const std::uint32_t seen = workers_[index].signal.now();
    if (stopping_.load(std::memory_order_seq_cst)) break;
    wake_from(index);
    work_off(index);
    workers_[index].idle.exchange(true, std::memory_order_acq_rel);
    if (work_off(index) == 0) workers_[index].signal.wait(seen, patience);
    workers_[index].idle.exchange(false, std::memory_order_acq_rel);
  }
}

bool Crew::stop(Clock::time_point deadline) {
  bool all_ended = !background_ || background_->ended_by(deadline);
  for (Worker& worker : workers_) all_ended = ends_by(worker, deadline) && all_ended;
  return all_ended;
}

bool Crew::ends_by(Worker& worker, Clock::time_point deadline) {
  if (!worker.thread.joinable()) return true;
  while (!worker.ended.load(std::memory_order_acquire)) {
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  worker.thread.join();
  return true;
}

}  // namespace raceway
