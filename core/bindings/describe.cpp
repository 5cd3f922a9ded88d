#include "describe.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "../library.hpp"
#include "../machine.hpp"
#include "../table_loop.hpp"
#include "arrays.hpp"
#include "interpreter.hpp"

namespace raceway::python {
namespace {

nb::dict column_dict(const raceway_column& column) {
  nb::dict result;
  static constexpr const char* kTypes[] = {"bool", "int8", "uint8", "int32", "int64", "float32", "float64"};
  result["name"] = column.name;
  result["dtype"] = kTypes[column.dtype];
  result["n"] = column.discrete_n;
  result["discrete"] = column.space == RACEWAY_DISCRETE;
  result["when"] = column.when;
  result["shape"] = nb::tuple(nb::cast(std::vector<std::int64_t>(column.shape, column.shape + column.ndim)));
  if (column.low) {
    const std::size_t size = elements_of(column);
    result["low"] = std::vector<double>(column.low, column.low + size);
    result["high"] = std::vector<double>(column.high, column.high + size);
  }
  return result;
}

nb::list column_list(const raceway_column* columns, std::size_t count) {
  nb::list result;
  for (std::size_t i = 0; i < count; ++i) result.append(column_dict(columns[i]));
  return result;
}

nb::dict task_dict(const Task& task, bool is_built_in) {
  static constexpr const char* kKinds[] = {"flag",  "integer", "real", "reals", "text",
                                           "lines", "file",    "name", "ranges"};
  nb::dict parameters, options, preset, entry;
  for (std::size_t i = 0; i < task.table->num_parameters; ++i) {
    const raceway_parameter& parameter = task.table->parameters[i];
    parameters[parameter.name] = nb::make_tuple(kKinds[parameter.kind], parameter.default_repr);
  }
  for (std::size_t i = 0; i < task.table->num_options; ++i) {
    const raceway_option& option = task.table->options[i];
    options[option.name] = nb::make_tuple(option.fallback, option.least, option.most);
  }
  for (const auto& [name, value] : task.preset) preset[name] = value;
  entry["id"] = task.id;
  entry["parameters"] = parameters;
  entry["options"] = options;
  entry["preset"] = preset;
  entry["max_episode_steps"] = task.max_episode_steps;
  entry["is_built_in"] = is_built_in;
  return entry;
}

// Runs the initialisers of the library: they are the user's own code.
Task opened(const std::string& path, const std::string& source) {
  report_crashes();
  const char* name = kept_name(source);
  const auto task = std::make_shared<std::optional<Task>>();
  run_interruptibly([path, name, task] {
    const UserCodeScope scope(name);
    *task = open_library(path);
  });
  (*task)->source = name;
  return **task;
}

}  // namespace

const Task& find_task(const std::string& id) {
  for (const Task& task : tasks()) {
    if (id == task.id) return task;
  }
  for (const auto& task : added_tasks()) {
    if (id == task->id) return *task;
  }
  throw nb::key_error(id.c_str());
}

Values::Values(const raceway_table& table, const nb::dict& kwargs) {
  for (std::size_t i = 0; i < table.num_parameters; ++i) {
    const raceway_parameter& parameter = table.parameters[i];
    if (!kwargs.contains(parameter.name)) continue;
    values_.push_back(value_of(parameter, kwargs[parameter.name]));
  }
}

raceway_value Values::value_of(const raceway_parameter& parameter, nb::handle given) {
  raceway_value value{};
  value.name = parameter.name;
  switch (parameter.kind) {
    case RACEWAY_FLAG:
      value.integer = nb::cast<bool>(given) ? 1 : 0;
      break;
    case RACEWAY_INTEGER:
      value.integer = nb::cast<std::int64_t>(given);
      break;
    case RACEWAY_REAL:
      value.real = nb::cast<double>(given);
      break;
    case RACEWAY_REALS: {
      const auto& reals = reals_.emplace_back(nb::cast<std::vector<double>>(given));
      value.reals = reals.data();
      value.num_reals = reals.size();
      break;
    }
    case RACEWAY_NAME:
      if (nb::isinstance<nb::int_>(given)) {
        value.integer = nb::cast<std::int64_t>(given);
      } else {
        value.text = texts_.emplace_back(nb::cast<std::string>(given)).c_str();
      }
      break;
    case RACEWAY_RANGES: {
      std::string names;
      auto& reals = reals_.emplace_back();
      for (const auto& [name, bounds] : nb::cast<nb::dict>(given)) {
        if (!reals.empty()) names += '\n';
        names += nb::cast<std::string>(name);
        for (const double bound : nb::cast<std::vector<double>>(bounds)) reals.push_back(bound);
      }
      value.text = texts_.emplace_back(names).c_str();
      value.reals = reals.data();
      value.num_reals = reals.size();
      break;
    }
    default:
      value.text = texts_.emplace_back(nb::cast<std::string>(given)).c_str();
  }
  return value;
}

Configurations::Configurations(const std::string& id, const std::vector<nb::dict>& kwargs) : task_(find_task(id)) {
  struct Work {
    std::vector<Values> given;
    std::vector<Configuration> made;
  };
  const auto work = std::make_shared<Work>();
  for (const nb::dict& each : kwargs) work->given.emplace_back(*task_.table, each);
  const auto configure_all = [work, &task = task_] {
    const Shelf shelf;
    const UserCodeScope scope(task.source);
    for (const Values& values : work->given) work->made.push_back(configure(*task.table, values.get()));
  };
  if (task_.source) {
    run_interruptibly(configure_all);
  } else {
    configure_all();
  }
  made_ = std::move(work->made);
}

nb::dict Configurations::layout(std::size_t index) const {
  const raceway_layout& layout = *task_.table->layout(made_.at(index).get());
  static constexpr const char* kContainers[] = {"single", "tuple", "dict"};
  nb::dict result;
  result["container"] = kContainers[layout.container];
  result["observation"] = column_list(layout.obs, layout.num_obs);
  result["action"] = column_dict(layout.action);
  result["info"] = column_list(layout.info, layout.num_info);
  result["step_s"] = layout.step_s;
  result["state"] = column_list(layout.state, layout.num_state);
  return result;
}

nb::list describe_tasks() {
  nb::list result;
  for (const Task& task : tasks()) result.append(task_dict(task, true));
  for (const auto& task : added_tasks()) result.append(task_dict(*task, false));
  return result;
}

nb::dict describe_library(const std::string& path, const std::string& source) {
  return task_dict(opened(path, source), false);
}

void add_library(const std::string& path, const std::string& source) {
  add_task(opened(path, source));
}

double run_table_loop(const std::string& id, const nb::dict& kwargs, std::int64_t limit, std::size_t num_envs,
                      nb::handle actions, std::size_t num_steps, int num_threads, std::uint32_t seed) {
  const Configurations configurations(id, {kwargs});
  const Task& task = configurations.task();
  const Configuration configuration = configurations.at(0);
  const raceway_column& column = task.table->layout(configuration.get())->action;
  BareRun run{num_envs, num_steps, num_threads > 0 ? num_threads : usable_cpus(), limit, seed, nullptr};
  run.actions = memory_of(actions, column.dtype, num_steps, num_envs * elements_of(column), "actions");
  run.source = task.source;
  const auto seconds = std::make_shared<double>();
  try {
    run_interruptibly(
        [&task, configuration, run, seconds] { *seconds = table_loop(*task.table, configuration.get(), run); });
  } catch (const nb::python_error&) {
    actions.inc_ref();  // the loop goes on, and reads them
    throw;
  }
  return *seconds;
}

}  // namespace raceway::python
