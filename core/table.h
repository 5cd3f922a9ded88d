/* Where the pool and its tasks meet: one versioned table of plain C functions.
 *
 * No standard-library type and no exception crosses it, so that an environment compiled later, by another compiler,
 * is a first-class one. A function works on a chunk: `count` consecutive environments starting at `first`.
 */
#ifndef RACEWAY_TABLE_H
#define RACEWAY_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define RACEWAY_TABLE_VERSION 3

#ifdef __cplusplus
extern "C" {
#endif

enum raceway_dtype {
  RACEWAY_BOOL,
  RACEWAY_INT8,
  RACEWAY_UINT8,
  RACEWAY_INT32,
  RACEWAY_INT64,
  RACEWAY_FLOAT32,
  RACEWAY_FLOAT64
};

enum raceway_space { RACEWAY_BOX, RACEWAY_DISCRETE };

/* How the leaves of an observation are put together. */
enum raceway_container { RACEWAY_SINGLE, RACEWAY_TUPLE, RACEWAY_DICT };

enum raceway_autoreset { RACEWAY_NEXT_STEP, RACEWAY_SAME_STEP, RACEWAY_DISABLED };

/* Where an environment stands. ENDED waits for its reset, FRESH has never been reset (or failed). */
enum raceway_status { RACEWAY_FRESH, RACEWAY_RUNNING, RACEWAY_ENDED };

/* When an info entry is there: after every reset and step, or after steps only. */
enum raceway_when { RACEWAY_ALWAYS, RACEWAY_STEPS };

/* A named array of fixed shape: a leaf of an observation, an action, an info entry, a part of the state. */
typedef struct raceway_column {
  const char* name;
  int32_t dtype; /* raceway_dtype */
  int32_t space; /* raceway_space; only observations and actions use it */
  int32_t when;  /* raceway_when; only info entries use it */
  int64_t discrete_n;
  int32_t ndim;
  int64_t shape[4];
  const double* low; /* one bound per element; only boxes have them, and parts of the state that are bounded */
  const double* high;
} raceway_column;

/* What one configured environment reads and writes. All leaves of an observation share one dtype and lie one after
 * the other in its row. */
typedef struct raceway_layout {
  int32_t container; /* raceway_container */
  size_t num_obs;
  const raceway_column* obs;
  raceway_column action;
  size_t num_info;
  const raceway_column* info;
  size_t num_state;
  const raceway_column* state;
  size_t num_faults; /* what may go wrong in a step: fault code 1 is the first */
  const char* const* faults;
  double step_s; /* simulated seconds per step; 0: the task has no such time */
} raceway_layout;

/* FILE is the path of a model, NAME the name or the number of a part of it, RANGES have a name each. */
enum raceway_kind {
  RACEWAY_FLAG,
  RACEWAY_INTEGER,
  RACEWAY_REAL,
  RACEWAY_REALS,
  RACEWAY_TEXT,
  RACEWAY_LINES,
  RACEWAY_FILE,
  RACEWAY_NAME,
  RACEWAY_RANGES
};

/* A keyword argument that the task takes, its default written as Python would. */
typedef struct raceway_parameter {
  const char* name;
  int32_t kind; /* raceway_kind */
  const char* default_repr;
} raceway_parameter;

/* A keyword argument as given: `integer` for flags and integers, `text` for text and lines joined by newlines. A name
 * has a text, or none and an integer. Ranges have their names as lines and two reals for each. */
typedef struct raceway_value {
  const char* name;
  int64_t integer;
  double real;
  const double* reals;
  size_t num_reals;
  const char* text;
} raceway_value;

/* A number that reset(options=...) may set, what it is otherwise, and from where to where it may be set. */
typedef struct raceway_option {
  const char* name;
  double fallback;
  double least;
  double most;
} raceway_option;

/* A PCG64 generator as NumPy keeps it, the buffered half of its last 64 bits included. */
typedef struct raceway_random {
  uint64_t state_high, state_low;
  uint64_t increment_high, increment_low;
  uint32_t has_half, half;
} raceway_random;

/* What the pool keeps about the current episode of one environment: here what every step touches, ... */
typedef struct raceway_episode {
  int64_t steps;
  int32_t limit;  /* truncated after so many steps; 0: never */
  int32_t status; /* raceway_status */
} raceway_episode;

/* ... and here the rest. */
typedef struct raceway_record {
  int64_t number; /* how many episodes were started */
  double reward_sum;
  double start_s;
  int64_t faults; /* how many episodes a fault has ended */
} raceway_record;

/* The rows of all environments: row i belongs to environment i. Pointers that a batch does not need are null. */
typedef struct raceway_batch {
  const raceway_layout* layout;
  void* envs;
  raceway_random* random;
  raceway_episode* episodes;
  raceway_record* records;
  const void* actions;
  void* obs;
  double* reward;
  uint8_t* terminated;
  uint8_t* truncated;
  uint8_t* fault;               /* what ended the episode out of its turn: a code of the layout's faults; 0: nothing */
  void* const* info;            /* one pointer per info column */
  uint8_t* const* info_present; /* and one to its marks: whether this row has it */
  void* final_obs;              /* SAME_STEP: the last observation and info of an episode that ended */
  void* const* final_info;
  double* episode_return; /* statistics of episodes that ended, when they are recorded */
  int64_t* episode_length;
  double* episode_time;
  const uint8_t* reset_mask; /* reset: which environments; null: all */
  const double* options;     /* reset: one value per option; null: the fallbacks */
  int32_t autoreset;         /* raceway_autoreset */
} raceway_batch;

/* Filled by a function that failed. */
typedef struct raceway_error {
  char text[512];
} raceway_error;

typedef struct raceway_table {
  uint32_t version;
  uint32_t table_size;
  const char* name;
  size_t num_parameters;
  const raceway_parameter* parameters;
  size_t num_options;
  const raceway_option* options;
  size_t env_size;
  size_t env_align;

  /* Environments with equal arguments share one configuration. Null on failure. */
  void* (*configure)(const raceway_value* values, size_t count, raceway_error* error);
  void (*release)(void* configuration);
  const raceway_layout* (*layout)(const void* configuration);

  int32_t (*construct)(void* env, const void* configuration, raceway_error* error);
  void (*destroy)(void* env);

  /* Both do the whole chunk and return the number of the first environment that failed, or -1. One that failed is
   * left FRESH; the others are not touched by it. */
  int64_t (*reset)(const raceway_batch* batch, size_t first, size_t count, raceway_error* error);
  int64_t (*step)(const raceway_batch* batch, size_t first, size_t count, raceway_error* error);
  /* Writes the current observations again, and where the batch has columns for them, the infos. */
  void (*observe)(const raceway_batch* batch, size_t first, size_t count);

  /* `row` holds the state columns one after the other, unpadded. A refused row leaves the environment as it was. */
  void (*save)(const void* env, void* row);
  int32_t (*load)(void* env, const void* row, raceway_error* error);

  /* Draws the environment as it is: rows from the top, red, green and blue bytes. Null: it has no picture. */
  int32_t picture_width, picture_height;
  int32_t (*draw)(const void* env, uint8_t* pixels, raceway_error* error);
} raceway_table;

/* What the pool's side gives to an environment that was compiled on its own, which is linked with nothing. */
typedef struct raceway_host {
  uint32_t version;
  double (*standard_normal)(raceway_random* random); /* as NumPy draws it */
} raceway_host;

/* What such an environment gives to the pool's side. The version comes first, whatever follows in it. */
typedef struct raceway_library {
  uint32_t version;
  uint32_t library_size;
  const char* id;            /* such as "MyTask-v0" */
  int64_t max_episode_steps; /* 0: no limit */
  const raceway_table* table;
} raceway_library;

/* The one symbol that its library exports. */
#define RACEWAY_LIBRARY_SYMBOL "raceway_native_library"
typedef const raceway_library* (*raceway_open_library)(const raceway_host* host);

#ifdef __cplusplus
}
#endif

#endif
