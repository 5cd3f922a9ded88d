// What this process may use of the machine it is on, and its ties to other processes.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace raceway {

// The CPUs in this process's affinity mask.
std::vector<int> allowed_cpus();

// The CPU time that the control groups (version 1 or 2) grant, in CPUs; nothing if they set no limit.
// `root` stands before every path read, for tests.
std::optional<double> cgroup_quota(const std::string& root = "");

// How many threads can run at once: the affinity mask, cut by the quota rounded up. At least one.
int usable_cpus();

// The NUMA node of each CPU, as the kernel tells; all on node 0 where it does not.
class Topology {
 public:
  explicit Topology(const std::string& root = "");
  int node_of(int cpu) const;
  int num_nodes() const { return num_nodes_; }  // counted up to the highest number

 private:
  std::vector<int> node_of_;
  int num_nodes_ = 1;
};

// Which CPU each worker is pinned to: neighbours share a NUMA node, so that a run of environments stays on one.
std::vector<int> pinning(std::vector<int> cpus, const Topology& topology, int workers);

// The numbers in a kernel list such as "0-3,8".
std::vector<int> parse_list(const std::string& text);

// Grows in every child of fork(): threads do not follow there, and what is counted in shared memory was counted once.
int fork_count();

// The kernel kills this process as soon as the thread that started it ends; at once if that has happened already.
void die_with_parent(int parent_pid);

}  // namespace raceway
