#include "machine.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <system_error>

namespace raceway {
namespace {

std::atomic<int> forks{0};
[[maybe_unused]] const int kRegistered = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1); });

constexpr int kMostCpus = 1 << 16;  // a list that names more is garbage

std::optional<std::string> first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

std::optional<double> number(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  try {
    return std::stod(*text);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

void lower(std::optional<double>& least, std::optional<double> value) {
  if (value && *value > 0 && (!least || *value < *least)) least = value;
}

// Version 2: "max 100000" or "150000 100000".
std::optional<double> quota_v2(const std::string& folder) {
  const auto line = first_line(folder + "/cpu.max");
  if (!line) return std::nullopt;
  std::istringstream words(*line);
  std::string quota, period;
  words >> quota >> period;
  const auto granted = number(quota), per = number(period);
  if (!granted || !per || *per <= 0) return std::nullopt;
  return *granted / *per;
}

std::optional<double> quota_v1(const std::string& folder) {
  const auto granted = number(first_line(folder + "/cpu.cfs_quota_us"));
  const auto per = number(first_line(folder + "/cpu.cfs_period_us"));
  if (!granted || !per || *granted <= 0 || *per <= 0) return std::nullopt;
  return *granted / *per;
}

// A limit on any group above ours binds us too.
template <class Read>
void lower_upwards(std::optional<double>& least, const std::string& mount, std::string group, Read read) {
  while (true) {
    lower(least, read(mount + group));
    const std::size_t slash = group.find_last_of('/');
    if (group == "/" || slash == std::string::npos) return;
    group.erase(slash);
  }
}

bool has_word(const std::string& comma_list, const std::string& word) {
  std::istringstream words(comma_list);
  for (std::string each; std::getline(words, each, ',');) {
    if (each == word) return true;
  }
  return false;
}

}  // namespace

std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) cpus.push_back(cpu);
    }
  } else {
    for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_ONLN); ++cpu) cpus.push_back(cpu);  // more CPUs than a set holds
  }
  return cpus;
}

std::optional<double> cgroup_quota(const std::string& root) {
  std::optional<double> least;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // hierarchy:controllers:path
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    if (controllers.empty()) {
      lower_upwards(least, root + "/sys/fs/cgroup", group, quota_v2);
    } else if (has_word(controllers, "cpu")) {
      lower_upwards(least, root + "/sys/fs/cgroup/cpu", group, quota_v1);
    }
  }
  return least;
}

int usable_cpus() {
  int cpus = std::max(1, static_cast<int>(allowed_cpus().size()));
  if (const auto quota = cgroup_quota()) {
    cpus = static_cast<int>(std::clamp(std::ceil(*quota), 1.0, static_cast<double>(cpus)));
  }
  return cpus;
}

std::vector<int> parse_list(const std::string& text) {
  std::vector<int> numbers;
  std::istringstream ranges(text);
  for (std::string range; std::getline(ranges, range, ',');) {
    int low = 0, high = 0;
    const int read = std::sscanf(range.c_str(), "%d-%d", &low, &high);
    if (read < 1 || low < 0) continue;
    if (read == 1) high = low;
    for (int value = low; value <= std::min(high, kMostCpus); ++value) numbers.push_back(value);
  }
  return numbers;
}

Topology::Topology(const std::string& root) {
  const std::string folder = root + "/sys/devices/system/node/";
  for (const int node : parse_list(first_line(folder + "online").value_or(""))) {
    for (const int cpu : parse_list(first_line(folder + "node" + std::to_string(node) + "/cpulist").value_or(""))) {
      if (cpu >= static_cast<int>(node_of_.size())) node_of_.resize(static_cast<std::size_t>(cpu) + 1, 0);
      node_of_[static_cast<std::size_t>(cpu)] = node;
      num_nodes_ = std::max(num_nodes_, node + 1);
    }
  }
}

int Topology::node_of(int cpu) const {
  return cpu >= 0 && cpu < static_cast<int>(node_of_.size()) ? node_of_[static_cast<std::size_t>(cpu)] : 0;
}

std::vector<int> pinning(std::vector<int> cpus, const Topology& topology, int workers) {
  std::stable_sort(cpus.begin(), cpus.end(),
                   [&](int left, int right) { return topology.node_of(left) < topology.node_of(right); });
  std::vector<int> pins;
  const auto count = static_cast<std::size_t>(workers);
  for (std::size_t worker = 0; worker < count && !cpus.empty(); ++worker) {
    // Fewer workers than CPUs are spread evenly over the nodes; more go around.
    const std::size_t at = count <= cpus.size() ? worker * cpus.size() / count : worker % cpus.size();
    pins.push_back(cpus[at]);
  }
  return pins;
}

int fork_count() {
  return forks.load(std::memory_order_relaxed);
}

void die_with_parent(int parent_pid) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) throw std::system_error(errno, std::generic_category(), "prctl");
  if (getppid() != parent_pid) _exit(1);  // it ended before the kernel was told
}

}  // namespace raceway
