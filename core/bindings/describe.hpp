// Tasks as Python sees them: what they are called, take, read and write.
#pragma once

#include <nanobind/nanobind.h>

#include <list>
#include <string>
#include <vector>

#include "../pool.hpp"
#include "../tasks.hpp"

namespace raceway::python {

namespace nb = nanobind;

const Task& find_task(const std::string& id);

// Keyword arguments, already of the kinds that the table names, as plain values. Keeps what they point to.
class Values {
 public:
  Values(const raceway_table& table, const nb::dict& kwargs);

  const std::vector<raceway_value>& get() const { return values_; }

 private:
  raceway_value value_of(const raceway_parameter& parameter, nb::handle given);

  std::vector<raceway_value> values_;
  std::list<std::string> texts_;
  std::list<std::vector<double>> reals_;
};

// What environments of one task are made from, one for each of several sets of keyword arguments.
class Configurations {
 public:
  Configurations(const std::string& id, const std::vector<nb::dict>& kwargs);

  const Task& task() const { return task_; }
  const Configuration& at(std::size_t index) const { return made_.at(index); }
  std::size_t size() const { return made_.size(); }
  bool has_pictures() const { return task_.table->draw != nullptr; }
  // What its environments read and write.
  nb::dict layout(std::size_t index) const;

 private:
  const Task& task_;
  std::vector<Configuration> made_;
};

nb::list describe_tasks();
// The task of a library that was made from the header `source`. It is only opened.
nb::dict describe_library(const std::string& path, const std::string& source);
// Makes it one of the tasks.
void add_library(const std::string& path, const std::string& source);
double run_table_loop(const std::string& id, const nb::dict& kwargs, std::int64_t limit, std::size_t num_envs,
                      nb::handle actions, std::size_t num_steps, int num_threads, std::uint32_t seed);

}  // namespace raceway::python
