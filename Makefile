# Everything sets itself up in .venv, from a fresh clone with nothing but Python, a C++ compiler and a package index.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PEERS := benchmarks/.venv
RAY := benchmarks/.venv-ray
RL := benchmarks/.venv-rl
RLLIB := benchmarks/.venv-rllib
PUFFER := benchmarks/.venv-puffer
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
COMPILER := $(if $(filter default,$(origin CXX)),c++,$(CXX))
CORE := CMakeLists.txt $(shell find core -name '*.[ch]pp' -o -name '*.h')
FORMATTED := $(shell find core tests/core -name '*.[ch]pp' -o -name '*.h') $(wildcard benchmarks/*.[ch]pp)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# The thread sanitizer cannot bear some kernels' randomised addresses; containers may not let us turn them off.
NO_ASLR := $(shell setarch $$(uname -m) -R true 2>/dev/null && echo setarch $$(uname -m) -R)
CTEST := $(BIN)/ctest --output-on-failure --test-dir
CMAKE := $(BIN)/cmake -S . -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) -DRACEWAY_STRICT=ON \
	-DPython_EXECUTABLE=$(abspath $(BIN)/python)
BARE := benchmarks/.bare

.PHONY: help check train wheel test test-all lint format bench bench-graph bench-train bench-python bench-checkpoints bench-learning sanitize clean
help:
	@echo "make train     build, then train CartPole-v1 until it is solved, while you watch"
	@echo "make wheel     a wheel in dist/, for other machines with the same system and Python"
	@echo "make test      build, then the C++ and Python tests"
	@echo "make test-all  the slow ones too, and the sanitizers"
	@echo "make lint      style, types, formatting"
	@echo "make format    put the formatting right"
	@echo "make bench     measure against envpool, Gymnasium and Ray (about 35 minutes), write the README's tables"
	@echo "make bench-train  measure training against SB3, SBX, RLlib and JAX over envpool (about 25 minutes)"
	@echo "make bench-python  measure Python environments against Gymnasium, SB3 and PufferLib (about 10 minutes)"
	@echo "make bench-checkpoints  measure what checkpoints cost (about 3 minutes)"
	@echo "make bench-learning  train what the learning studies lack (about 16 hours in all), write their pages"
	@echo "make sanitize  the C++ tests under the thread and address sanitizers"

check:
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer. Install it: apt install python3 (Debian 12, Ubuntu 24.04 or newer), or 'make PYTHON=/path/to/python3.12'." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make virtual environments. Install that: apt install python3-venv" >&2; exit 1; }
	@$(COMPILER) --version >/dev/null 2>&1 || { echo "No C++ compiler. Install one: apt install g++ (dnf install gcc-c++), or 'make CXX=clang++'." >&2; exit 1; }
	@echo '#include <barrier>' | $(COMPILER) -std=c++20 -fsyntax-only -x c++ - 2>/dev/null || { echo "$(COMPILER) does not know C++20. Install GCC 11, Clang 14 or newer: apt install g++ (dnf install gcc-c++)" >&2; exit 1; }
	@$(PYTHON) -c 'import os, sysconfig, sys; sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' || { echo "$(PYTHON) has no headers. Install them: apt install python3-dev (dnf install python3-devel)" >&2; exit 1; }

# Every target is a file that is written last, so that what was interrupted is begun again.
$(VENV)/.made: | check
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(READY): pyproject.toml constraints.txt $(CORE) $(VENV)/.made
	@echo "Installing, and compiling the C++ core: about two minutes on two cores."
	$(PIP) install -c constraints.txt pip scikit-build-core nanobind numpy mujoco==3.17.0 cmake ninja
	$(PIP) install -c constraints.txt --no-build-isolation -C cmake.define.RACEWAY_STRICT=ON -e '.[dev]'
	@touch $@

# The C++ tests: plain, and under each sanitizer.
build/tests-%/.ready: $(READY) $(wildcard tests/core/*)
	$(CMAKE) -B $(@D) -DRACEWAY_TESTS=ON -DRACEWAY_SANITIZE=$(filter-out plain,$*) >/dev/null
	$(BIN)/cmake --build $(@D)
	@touch $@

# What the environments do without a pool, the limit in benchmarks: a module beside them, no part of the package.
$(BARE): $(READY) $(wildcard benchmarks/bare_loops.*)
	$(CMAKE) -B build/benchmarks -DRACEWAY_BENCHMARKS=ON >/dev/null
	$(BIN)/cmake --build build/benchmarks --target _bare_loops
	@touch $@

train: $(READY)
	@rm -rf build/train
	$(BIN)/raceway train CartPole-v1 --log.directory build/train --log.name run
	$(BIN)/raceway eval build/train/CartPole-v1/run --episodes 100 --at-least 475

wheel: $(READY)
	@rm -f dist/raceway-*.whl
	$(PIP) wheel --no-deps --no-build-isolation -C cmake.define.RACEWAY_STRICT=ON -w dist .
	@ls dist/raceway-*.whl

# Two files at a time; what measures time, or what the whole machine holds, comes after that and alone.
test: $(READY) build/tests-plain/.ready
	$(CTEST) build/tests-plain
	$(BIN)/python -m pytest -n 2 --dist loadfile -m 'not slow and not alone'
	$(BIN)/python -m pytest -m 'alone and not slow'

test-all: $(READY) $(BARE) build/tests-plain/.ready sanitize
	$(CTEST) build/tests-plain
	RACEWAY_TEST_ALL=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m 'not alone'
	RACEWAY_TEST_ALL=1 $(BIN)/python -m pytest -m alone

sanitize: build/tests-thread/.ready build/tests-address/.ready
	$(NO_ASLR) $(CTEST) build/tests-thread
	$(CTEST) build/tests-address

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(FORMATTED)
	$(BIN)/python -m benchmarks.table --check
	$(BIN)/python -m benchmarks.pages --check
	$(BIN)/python -m benchmarks.picture --check

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(FORMATTED)

$(PEERS)/.ready: benchmarks/peers.txt | check
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip --disable-pip-version-check --quiet install -r benchmarks/peers.txt
	@touch $@

$(RAY)/.ready: benchmarks/ray.txt | check
	$(PYTHON) -m venv $(RAY)
	$(RAY)/bin/python -m pip --disable-pip-version-check --quiet install -r benchmarks/ray.txt
	@touch $@

$(RL)/.ready: benchmarks/rl.txt | check
	$(PYTHON) -m venv $(RL)
	$(RL)/bin/python -m pip --disable-pip-version-check --quiet install -r benchmarks/rl.txt
	@touch $@

$(RLLIB)/.ready: benchmarks/rllib.txt | check
	$(PYTHON) -m venv $(RLLIB)
	$(RLLIB)/bin/python -m pip --disable-pip-version-check --quiet install -r benchmarks/rllib.txt
	@touch $@

# Without PufferLib's own environments its setup.py asks for a list of them that it has not made: a line in a .pth file,
# which every start of that Python reads, makes it.
$(PUFFER)/.ready: benchmarks/puffer.txt | check
	$(PYTHON) -m venv $(PUFFER)
	$(PUFFER)/bin/python -m pip --disable-pip-version-check --quiet install -r benchmarks/puffer.txt
	echo 'import builtins; builtins.c_extension_paths = []' > $$($(PUFFER)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/without_ocean.pth
	NO_OCEAN=1 NO_TRAIN=1 $(PUFFER)/bin/python -m pip --disable-pip-version-check --quiet install --no-build-isolation --no-deps pufferlib==3.0.0
	@touch $@

bench: $(READY) $(BARE) $(PEERS)/.ready bench-graph
	$(BIN)/python -m benchmarks.environments
	$(BIN)/python -m benchmarks.table
	$(BIN)/python -m benchmarks.picture

# The part of it that is about graphs alone (about 10 minutes).
bench-graph: $(READY) $(RAY)/.ready
	$(BIN)/python -m benchmarks.graph
	$(BIN)/python -m benchmarks.table

# Training from end to end, against other learners (about 25 minutes).
bench-train: $(READY) $(BARE) $(RL)/.ready $(RLLIB)/.ready
	$(BIN)/python -m benchmarks.train
	$(BIN)/python -m benchmarks.table

# Python environments in worker processes (about 10 minutes). PufferLib is left out where it does not install.
bench-python: $(READY) $(BARE) $(PEERS)/.ready $(RL)/.ready
	@$(MAKE) --no-print-directory $(PUFFER)/.ready || echo "PufferLib does not install here: it is left out." >&2
	$(BIN)/python -m benchmarks.python_environments
	$(BIN)/python -m benchmarks.table
	$(BIN)/python -m benchmarks.pages

# What checkpoints cost (about 3 minutes).
bench-checkpoints: $(READY)
	$(BIN)/python -m benchmarks.checkpoints
	$(BIN)/python -m benchmarks.pages

# What is learnt, under which schedule, beside SB3, by which preset (about 16 hours; what is done is not repeated).
bench-learning: $(READY) $(RL)/.ready
	for study in schedules corrections a2c impala sb3 presets; do $(BIN)/python -m benchmarks.learning run $$study || exit 1; done
	for study in schedules a2c impala sb3 presets; do $(BIN)/python -m benchmarks.learning speed $$study || exit 1; done
	$(BIN)/python -m benchmarks.learning cost
	$(BIN)/python -m benchmarks.learning record
	$(BIN)/python -m benchmarks.pages

clean:
	rm -rf build dist benchmarks/_bare_loops.*.so $(BARE) $(VENV) $(PEERS) $(RAY) $(RL) $(RLLIB) $(PUFFER)
