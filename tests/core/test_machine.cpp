#include <sched.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "check.hpp"
#include "machine.hpp"

using namespace raceway;

namespace {

// A directory that stands for "/", gone at the end.
class FakeRoot {
 public:
  FakeRoot() {
    std::string pattern = (std::filesystem::temp_directory_path() / "raceway-root-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~FakeRoot() { std::filesystem::remove_all(path_); }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;

  FakeRoot& write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = path_ + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return *this;
  }
  FakeRoot& group(const std::string& text) { return write("/proc/self/cgroup", text); }
  FakeRoot& nodes(const std::string& online, const std::vector<std::string>& cpulists) {
    const std::string folder = "/sys/devices/system/node/";
    write(folder + "online", online + "\n");
    for (std::size_t i = 0; i < cpulists.size(); ++i) {
      write(folder + "node" + std::to_string(i) + "/cpulist", cpulists[i] + "\n");
    }
    return *this;
  }
  std::optional<double> quota() const { return cgroup_quota(path_); }
  Topology topology() const { return Topology(path_); }

 private:
  std::string path_;
};

constexpr const char* kV1 = "/sys/fs/cgroup/cpu";
constexpr const char* kV2 = "/sys/fs/cgroup";

std::vector<int> up_to(int n) {
  std::vector<int> numbers;
  for (int i = 0; i < n; ++i) numbers.push_back(i);
  return numbers;
}

}  // namespace

CASE("kernel lists are read, and what is no number is passed by") {
  CHECK_EQUAL(parse_list("0"), std::vector<int>{0});
  CHECK_EQUAL(parse_list("0-3,8"), (std::vector<int>{0, 1, 2, 3, 8}));
  CHECK_EQUAL(parse_list("5,2-3\n"), (std::vector<int>{5, 2, 3}));
  CHECK_EQUAL(parse_list(""), std::vector<int>{});
  CHECK_EQUAL(parse_list("\n"), std::vector<int>{});
  CHECK_EQUAL(parse_list("none,4,,x-y"), std::vector<int>{4});
  CHECK_EQUAL(parse_list("7-5"), std::vector<int>{});
}

CASE("a negative number is no CPU") {
  CHECK_EQUAL(parse_list("-1,2"), std::vector<int>{2});
}

CASE("no control groups, no quota") {
  CHECK(!FakeRoot().quota());
  CHECK(!FakeRoot().group("0::/\n").quota());
  CHECK(!FakeRoot().group("0::/a/b\n").write(std::string(kV2) + "/a/b/cpu.max", "max 100000\n").quota());
}

CASE("version 2: the tightest limit of the group and those above it") {
  FakeRoot root;
  root.group("0::/outer/inner\n");
  const std::string base = kV2;
  root.write(base + "/outer/inner/cpu.max", "max 100000\n");
  CHECK(!root.quota());
  root.write(base + "/outer/cpu.max", "150000 100000\n");
  CHECK_EQUAL(root.quota().value_or(0), 1.5);
  root.write(base + "/outer/inner/cpu.max", "50000 100000\n");
  CHECK_EQUAL(root.quota().value_or(0), 0.5);
  root.write(base + "/cpu.max", "20000 100000\n");
  CHECK_EQUAL(root.quota().value_or(0), 0.2);
}

CASE("version 2: in a namespace of its own the group is the root") {
  CHECK_EQUAL(FakeRoot().group("0::/\n").write(std::string(kV2) + "/cpu.max", "300000 100000\n").quota().value_or(0),
              3.0);
}

CASE("version 2: a group outside the namespace cannot be seen, the mount can") {
  FakeRoot root;
  root.group("0::/../elsewhere\n").write(std::string(kV2) + "/cpu.max", "200000 100000\n");
  CHECK_EQUAL(root.quota().value_or(0), 2.0);
}

CASE("version 1: quota and period of the cpu controller, up to the mount") {
  FakeRoot root;
  root.group("5:memory:/m\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/x\n");
  const std::string base = kV1;
  root.write(base + "/docker/abc/cpu.cfs_quota_us", "-1\n").write(base + "/docker/abc/cpu.cfs_period_us", "100000\n");
  CHECK(!root.quota());
  root.write(base + "/docker/cpu.cfs_quota_us", "250000\n");
  CHECK(!root.quota());  // a quota without its period says nothing
  root.write(base + "/docker/cpu.cfs_period_us", "100000\n");
  CHECK_EQUAL(root.quota().value_or(0), 2.5);
  root.write(base + "/cpu.cfs_quota_us", "100000\n").write(base + "/cpu.cfs_period_us", "100000\n");
  CHECK_EQUAL(root.quota().value_or(0), 1.0);
}

CASE("version 1: another controller whose name contains cpu does not count") {
  FakeRoot root;
  root.group("3:cpuset:/\n2:cpuacct:/\n");
  root.write(std::string(kV1) + "/cpu.cfs_quota_us", "100000\n")
      .write(std::string(kV1) + "/cpu.cfs_period_us", "50000");
  CHECK(!root.quota());
}

CASE("garbage in the control groups is no quota and no crash") {
  for (const char* text : {"", "garbage", "0::", ":::", "0:\n", "a:b:c\n0::/\n"}) {
    CHECK(!FakeRoot().group(text).quota());
  }
  for (const char* text : {"", "x y", "100000", "100000 0", "-5 100000", "nan nan", "max", "100000 -1"}) {
    CHECK(!FakeRoot().group("0::/\n").write(std::string(kV2) + "/cpu.max", text).quota());
  }
  FakeRoot root;
  root.group("2:cpu:/\n").write(std::string(kV1) + "/cpu.cfs_quota_us", "lots\n");
  CHECK(!root.write(std::string(kV1) + "/cpu.cfs_period_us", "0\n").quota());
}

CASE("a group path that does not begin with a slash is no crash") {
  CHECK(!FakeRoot().group("0::relative\n").quota());
  CHECK(!FakeRoot().group("2:cpu:relative\n").quota());
}

CASE("two nodes: each CPU on its own") {
  const Topology topology = FakeRoot().nodes("0-1", {"0-1,4", "2-3,5"}).topology();
  CHECK_EQUAL(topology.num_nodes(), 2);
  std::vector<int> nodes;
  for (int cpu = 0; cpu < 6; ++cpu) nodes.push_back(topology.node_of(cpu));
  CHECK_EQUAL(nodes, (std::vector<int>{0, 0, 1, 1, 0, 1}));
  CHECK_EQUAL(topology.node_of(99), 0);
  CHECK_EQUAL(topology.node_of(-1), 0);
}

CASE("where the kernel tells of no nodes, all CPUs are on node 0") {
  const Topology topology = FakeRoot().topology();
  CHECK_EQUAL(topology.num_nodes(), 1);
  CHECK_EQUAL(topology.node_of(0), 0);
}

CASE("a node that is offline, or has memory only, has no CPUs") {
  const Topology offline = FakeRoot().nodes("0", {"0-3", "4-7"}).topology();
  CHECK_EQUAL(offline.num_nodes(), 1);
  CHECK_EQUAL(offline.node_of(5), 0);
  const Topology memory_only = FakeRoot().nodes("0-1", {"0-3", ""}).topology();
  CHECK_EQUAL(memory_only.num_nodes(), 1);
}

CASE("garbage in the topology is no crash") {
  CHECK_EQUAL(FakeRoot().nodes("x", {"0"}).topology().num_nodes(), 1);
  CHECK_EQUAL(FakeRoot().nodes("0-1", {"-1", "-7--5"}).topology().num_nodes(), 1);
}

CASE("fewer workers than CPUs spread over the nodes, and neighbours share one") {
  FakeRoot root;
  const Topology topology = root.nodes("0-1", {"0,2,4,6", "1,3,5,7"}).topology();
  for (int workers = 2; workers <= 8; ++workers) {
    const std::vector<int> pins = pinning(up_to(8), topology, workers);
    CHECK_EQUAL(pins.size(), static_cast<std::size_t>(workers));
    CHECK_EQUAL(std::set<int>(pins.begin(), pins.end()).size(), pins.size());
    int crossings = 0, on_first = 0;
    for (std::size_t i = 0; i < pins.size(); ++i) {
      if (i > 0) crossings += topology.node_of(pins[i]) != topology.node_of(pins[i - 1]);
      on_first += topology.node_of(pins[i]) == 0;
    }
    CHECK_EQUAL(crossings, 1);
    CHECK(on_first == workers / 2 || on_first == (workers + 1) / 2);
  }
}

CASE("more workers than CPUs go around, one CPU at most one ahead of another") {
  const std::vector<int> pins = pinning({3, 9}, FakeRoot().topology(), 5);
  CHECK_EQUAL(pins, (std::vector<int>{3, 9, 3, 9, 3}));
}

CASE("no CPU or no worker, no pin") {
  CHECK_EQUAL(pinning({}, Topology(), 3), std::vector<int>{});
  CHECK_EQUAL(pinning({0, 1}, Topology(), 0), std::vector<int>{});
}

CASE("allowed and usable CPUs follow the affinity mask") {
  cpu_set_t before;
  CHECK_EQUAL(sched_getaffinity(0, sizeof before, &before), 0);
  const std::vector<int> cpus = allowed_cpus();
  CHECK_EQUAL(cpus.size(), static_cast<std::size_t>(CPU_COUNT(&before)));
  CHECK(usable_cpus() >= 1 && usable_cpus() <= static_cast<int>(cpus.size()));
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(cpus.back()), &one);
  CHECK_EQUAL(sched_setaffinity(0, sizeof one, &one), 0);
  CHECK_EQUAL(allowed_cpus(), std::vector<int>{cpus.back()});
  CHECK_EQUAL(usable_cpus(), 1);
  sched_setaffinity(0, sizeof before, &before);
  CHECK_EQUAL(allowed_cpus(), cpus);
}
