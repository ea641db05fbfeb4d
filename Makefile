# Sluice. `make help` lists the targets; the file reads from top to bottom: settings, objects, programs, tests, checks.

SANITIZE ?=
# Objects with and without sanitizers have folders of their own.
BUILD    ?= build$(if $(SANITIZE),/asan)
CORPUS   ?= ../shared/conformance
# Lines for stack traces; for a debugger: make BUILD=build/debug CFLAGS='-O0 -g3'
CFLAGS   ?= -O2 -g1
PKGS     := libcurl libssl libcrypto jansson zlib gmp sqlite3 libpq
# `make WERROR=` for a compiler that warns of more than ours.
WERROR   ?= -Werror
WARN     := -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2 -Wundef $(WERROR)
BASE     := -std=c11 -D_GNU_SOURCE -I. -fvisibility=hidden -ffunction-sections -fdata-sections -fno-plt $(WARN) -MMD -MP
ifneq ($(SANITIZE),)
# (In instrumented code gcc does not see the ranges that its format-truncation warning needs.)
BASE     += -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer \
            -DSL_SANITIZED -DSL_ARENA_DEBUG -Wno-unknown-warning-option -Wno-format-truncation
LDFLAGS  += -fsanitize=$(SANITIZE)
endif
LDFLAGS  += -Wl,--gc-sections -Wl,--as-needed
# A faster gzip encoder, if it is installed; `make DEFLATE=` builds without it.
DEFLATE  := $(shell pkg-config --exists libdeflate 2>/dev/null && echo -DSL_HAVE_LIBDEFLATE)
# Evaluated when used, not when read: on a fresh machine the set-up runs first.
LIBS      = $(shell pkg-config --libs $(PKGS)) $(if $(DEFLATE),$(shell pkg-config --libs libdeflate)) -ldl -lm
TOOL_LIBS = $(shell pkg-config --libs libmicrohttpd)

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:

# ---- objects: one library of all rooms, two mains ----

MAINS    := runtime/bootstrap.c cli/sluice.c
# All files of that name below the folders.
below     = $(sort $(shell find $(1) -name '$(2)'))
ROOMS    := base net streams aws sinks handlers data runtime
SOURCES  := $(filter-out $(MAINS),$(call below,$(ROOMS),*.c))
TOOL     := $(filter-out $(MAINS),$(call below,esm live cli,*.c))
OBJECTS  := $(SOURCES:%.c=$(BUILD)/%.o)
TOOL_OBJ := $(TOOL:%.c=$(BUILD)/%.o)
LIBRARY  := $(BUILD)/libsluice.a
PROGRAMS := $(patsubst runtime/%.c,$(BUILD)/%,$(wildcard runtime/bootstrap.c)) $(patsubst cli/%.c,$(BUILD)/%,$(wildcard cli/sluice.c))
PLUGINS  := $(patsubst examples/%.c,$(BUILD)/handlers/%.so,$(wildcard examples/*.c))
# What a plugin includes: handler.h with the headers it includes, as one file.
PUBLIC   := handlers/handler.h handlers/expect.h handlers/host_table.h base/types.h sinks/port.h streams/types.h
HEADER   := $(BUILD)/include/sluice/handler.h

MANUAL   := $(BUILD)/man/sluice.1

all: $(PROGRAMS) $(PLUGINS) $(HEADER) ## build/bootstrap, build/sluice and the example plugins

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC    $<"
	@$(CC) $(BASE) $(DEFLATE) $(CPPFLAGS) $(CFLAGS) -c $< -o $@

# The assembler includes these files (base/embed.h); -MMD does not see that.
$(BUILD)/cli/new_handler.o: examples/handler_template.c $(wildcard examples/skeleton/*)

$(BUILD)/handlers/pipeline/config_schema.o: handlers/pipeline/when.schema.json handlers/pipeline/options.schema.json

$(BUILD)/cli/output/report/page.o: $(addprefix cli/output/report/page.,css js svg)

# Written anew only when it has changed: one object knows the version.
VERSION  := $(shell cat VERSION)
# (Of this tree, not of one around it; and root may install what a user has built.)
COMMIT   ?= $(or $(if $(wildcard .git),$(shell git -c safe.directory='*' rev-parse --short=12 HEAD 2>/dev/null)),unknown)
STAMP     = $(BUILD)/version-$(VERSION)-$(COMMIT)
$(STAMP):
	@mkdir -p $(@D) && rm -f $(BUILD)/version-* && touch $@
$(BUILD)/base/version.o: $(STAMP)
$(BUILD)/base/version.o: BASE += -DSL_VERSION='"$(VERSION)"' -DSL_COMMIT='"$(COMMIT)"'

$(LIBRARY): $(OBJECTS)
	@rm -f $@
	@$(AR) rcs $@ $^

# What a Lambda function in C links: the Runtime API client and what it stands on, as one object that shows sl_lambda_* alone.
RUNTIME  := $(BUILD)/libsluice-runtime.a
$(RUNTIME): $(BUILD)/runtime/lambda/lambda.o $(BUILD)/runtime/api/client.o $(LIBRARY)
	@echo "  AR    $@"
	@CC="$(CC)" scripts/runtime_library.sh $@ $^

$(BUILD)/bootstrap: $(BUILD)/runtime/bootstrap.o $(LIBRARY)
	@echo "  LINK  $@"
	@$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/sluice: $(BUILD)/cli/sluice.o $(TOOL_OBJ) $(LIBRARY)
	@echo "  LINK  $@"
	@$(CC) $(LDFLAGS) -o $@ $^ $(LIBS) $(TOOL_LIBS)

# Plugins see the one public header, as it is installed, and link none of our code.
$(HEADER): $(PUBLIC) scripts/amalgamate.awk
	@mkdir -p $(@D)
	@awk -f scripts/amalgamate.awk handlers/handler.h >$@

PLUGIN   := -I$(BUILD)/include -fPIC -shared -fvisibility=hidden $(filter -W%,$(WARN)) $(if $(SANITIZE),-fsanitize=$(SANITIZE))

$(BUILD)/handlers/%.so: examples/%.c $(HEADER)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CC) -std=c11 $(PLUGIN) $(CFLAGS) -o $@ $<

# ---- installing: PREFIX and DESTDIR as usual ----

# The verbs and their flags come from the command's own --help.
$(MANUAL): $(BUILD)/sluice scripts/man.sh docs/man/sluice.1.in
	@mkdir -p $(@D)
	@scripts/man.sh $(BUILD)/sluice docs/man/sluice.1.in >$@

PREFIX  ?= /usr/local
# Where the programs and the library come from: a release has them of another architecture.
FROM    ?= $(BUILD)
PC_PREFIX ?= $(PREFIX)
INSTALL  = install -D -m
# In quotes where it is used: a folder may have spaces.
AT       = $(DESTDIR)$(PREFIX)
# What uninstall removes.
PLACES   = bin/sluice lib/sluice/sluice lib/sluice/bootstrap lib/libsluice-runtime.a include/sluice/handler.h include/sluice/lambda.h \
           lib/pkgconfig/sluice.pc lib/pkgconfig/sluice-runtime.pc share/sluice/sluice.schema.json share/man/man1/sluice.1 \
           share/man/man7/sluice-handler.7 share/man/man3/sluice-lambda.3 share/bash-completion/completions/sluice \
           share/zsh/site-functions/_sluice share/doc/sluice/LICENSE share/doc/sluice/NOTICE

install: all $(FROM)/libsluice-runtime.a $(MANUAL) ## make install DESTDIR= PREFIX=/usr/local: sluice, bootstrap, the headers, the runtime library, man pages, completion
	install -d "$(AT)/lib/sluice/handlers" "$(AT)/bin"
	$(INSTALL) 755 -t "$(AT)/lib/sluice" $(FROM)/sluice $(FROM)/bootstrap
	ln -sf ../lib/sluice/sluice "$(AT)/bin/sluice"
	$(INSTALL) 644 $(FROM)/libsluice-runtime.a "$(AT)/lib/libsluice-runtime.a"
	$(INSTALL) 644 -t "$(AT)/include/sluice" $(HEADER) runtime/lambda/lambda.h
	$(INSTALL) 644 docs/sluice.schema.json "$(AT)/share/sluice/sluice.schema.json"
	$(INSTALL) 644 -t "$(AT)/share/man/man1" $(MANUAL)
	$(INSTALL) 644 -t "$(AT)/share/man/man7" docs/man/sluice-handler.7
	$(INSTALL) 644 -t "$(AT)/share/man/man3" docs/man/sluice-lambda.3
	$(INSTALL) 644 -t "$(AT)/share/doc/sluice" LICENSE NOTICE
	install -d "$(AT)/lib/pkgconfig" "$(AT)/share/bash-completion/completions" "$(AT)/share/zsh/site-functions"
	for pc in sluice sluice-runtime; do \
		sed 's|@PREFIX@|$(PC_PREFIX)|; s|@VERSION@|$(VERSION)|' docs/man/$$pc.pc.in >"$(AT)/lib/pkgconfig/$$pc.pc" || exit 1; done
	scripts/completion.sh $(BUILD)/sluice bash >"$(AT)/share/bash-completion/completions/sluice"
	scripts/completion.sh $(BUILD)/sluice zsh >"$(AT)/share/zsh/site-functions/_sluice"

uninstall: ## with the same DESTDIR= and PREFIX=: remove all that install put there
	for place in $(PLACES); do rm -f "$(AT)/$$place" || exit 1; done
	-rmdir "$(AT)/lib/sluice/handlers" "$(AT)/lib/sluice" "$(AT)/include/sluice" "$(AT)/share/sluice" "$(AT)/share/doc/sluice"

# ---- tests ----

TESTS    := $(patsubst %.c,$(BUILD)/%,$(call below,tests,test_*.c))
SUPPORT  := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/support/*.c))
FUZZERS  := $(patsubst tests/fuzz/%.c,$(BUILD)/tests/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
# Each reads the corpus folder named on its command line.
CORPORA  := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/conformance/*.c))
SIMULATION := $(patsubst %.c,$(BUILD)/%.o,$(filter-out tests/simulation/test_%,$(wildcard tests/simulation/*.c)))
BENCH_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(filter-out bench/support/runtime_echo.c,$(wildcard bench/support/*.c)))
BENCHES  := $(patsubst %.c,$(BUILD)/%,$(wildcard bench/bench_*.c))

# There are hundreds of them: by the linker that takes a third of the time, where it is installed. (What is released is linked by the
# compiler's own.)
LINKER   := $(if $(shell command -v ld.gold),-fuse-ld=gold)

$(BUILD)/tests/%: $(BUILD)/tests/%.o $(SUPPORT) $(TOOL_OBJ) $(LIBRARY)
	@echo "  LINK  $@"
	@$(CC) $(LDFLAGS) $(LINKER) -o $@ $^ $(LIBS) $(TOOL_LIBS) -lcmocka

# Tests of these rooms that do not give back their memory fail, without instrumented objects, too. (The leak checker makes threads
# slow and can hang a fork beside one: the sanitizers see the other tests' leaks. `make LEAKS=`: under a debugger, or strace.)
LEAKS    ?= $(if $(SANITIZE),,-fsanitize=leak)
THREADS  := $(addprefix $(BUILD)/tests/handlers/builtin/test_,tombstones history)
$(filter-out $(THREADS),$(filter $(addprefix $(BUILD)/tests/,base/% streams/% handlers/%),$(TESTS))) $(FUZZERS): private LDFLAGS += $(LEAKS)

$(BUILD)/tests/simulation/test_simulation: $(SIMULATION)
$(filter $(BUILD)/tests/data/source/%,$(TESTS)): $(BUILD)/tests/data/source/pieces.o

# Plugins that misbehave; whatever test is in the folder may load them.
$(filter $(BUILD)/tests/runtime/%,$(TESTS)): | $(patsubst %.c,$(BUILD)/%.so,$(wildcard tests/runtime/plugins/*.c))
$(BUILD)/tests/runtime/plugins/%.so: tests/runtime/plugins/%.c $(HEADER)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CC) -std=c11 -D_GNU_SOURCE $(PLUGIN) $(CFLAGS) -o $@ $<

# The plain driver replays a fuzz entry's corpus in the ordinary test run; `make fuzz` links libFuzzer instead.
$(FUZZERS): $(BUILD)/tests/fuzz/%: $(BUILD)/tests/fuzz/%.o $(BUILD)/tests/fuzz/driver.o $(LIBRARY)
	@echo "  LINK  $@"
	@$(CC) $(LDFLAGS) $(LINKER) -o $@ $^ $(LIBS)

# (By `make sanitized`.)
$(BUILD)/libfuzzer/%: $(BUILD)/tests/fuzz/%.o $(LIBRARY)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CC) $(LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(LIBS)

$(BUILD)/bench/%.o: bench/%.cc
	@mkdir -p $(@D)
	@echo "  CXX   $<"
	@$(CXX) -O2 -std=c++17 -c $< -o $@

$(BUILD)/bench/bench_decode: $(BUILD)/bench/simdjson.o
$(BUILD)/bench/bench_decode: LIBS += -lsimdjson -lstdc++

$(BUILD)/bench/bench_invoke: | $(BUILD)/bench/runtime_echo
$(BUILD)/bench/runtime_echo: $(BUILD)/bench/support/runtime_echo.o $(RUNTIME)
	@echo "  LINK  $@"
	@$(CC) $(LDFLAGS) -o $@ $^ $(shell pkg-config --libs libcurl)

$(BUILD)/bench/bench_tail: $(BUILD)/bench/bench_tail.o $(BENCH_OBJ) $(TOOL_OBJ) $(LIBRARY)
	@echo "  LINK  $@"
	@$(CC) $(LDFLAGS) -o $@ $^ $(LIBS) $(TOOL_LIBS)

$(BUILD)/bench/bench_plugin: | $(BUILD)/bench/empty.so
$(BUILD)/bench/empty.so: bench/support/empty_handler.c $(HEADER)
	@mkdir -p $(@D)
	@$(CC) -std=c11 $(PLUGIN) $(CFLAGS) -DBENCH_PLUGIN -o $@ $<

$(BUILD)/bench/%: $(BUILD)/bench/%.o $(BENCH_OBJ) $(LIBRARY)
	@echo "  LINK  $@"
	@$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

# Those that mostly wait come first.
WAITING  := $(addprefix $(BUILD)/tests/,net/test_wire live/tail/test_tail_stream live/tail/test_tail_verb live/lease/test_leases handlers/builtin/test_replicate)
UNITS     = $(WAITING) $(filter-out $(WAITING),$(TESTS)) $(FUZZERS)
ifneq ($(ROOM),)
UNITS     = $(filter $(BUILD)/tests/$(ROOM)/%,$(TESTS))
endif
unit: all $(UNITS) ## the unit tests and the fuzz corpora alone; ROOM=sinks: those of one room
	@BUILD=$(BUILD) scripts/run_tests.py $(UNITS)

# The programs that scripts/check.sh runs, built; and their names.
tests: $(TESTS) $(FUZZERS) $(CORPORA)
list-tests:
	@printf '%s\n' $(UNITS)

# clang, so that its warnings are seen, too; and ready for libFuzzer, so that one build serves all.
SANITIZED = CC=clang SANITIZE=fuzzer-no-link,address,undefined BUILD=$(BUILD)/clang CFLAGS="-O1 -g"
GOALS ?= unit
sanitized: ## make sanitized GOALS=unit: built by clang with ASan and UBSan, in build/clang
	@$(MAKE) --no-print-directory $(SANITIZED) $(GOALS)

quick: lint unit ## what every commit must pass: lint and the unit tests; ROOM=sinks: while you work on one room

lint: ## which room includes which, banned functions, headers that compile alone
	@WARN="$(WARN)" scripts/lint.sh

check: setup ## what every merge must pass: lint, every test and script, in ten minutes
	@BUILD=$(BUILD) CORPUS=$(CORPUS) scripts/check.sh

check-all: setup all ## the rest, after check: every test again under ASan and UBSan (clang), fuzzing, the zips of both architectures, the longer targets
	@BUILD=$(BUILD) ALL=1 scripts/check.sh

conformance: all $(TESTS) $(CORPORA) ## make conformance CORPUS=folder: the tests on other people's data
	@BUILD=$(BUILD) scripts/conformance.sh $(CORPUS)

setup: ## install what is needed (Debian 12), once
	@scripts/setup.sh build run check bench package

run: ## the main job: replay a recorded stream through the real bootstrap
	@scripts/setup.sh build
	@$(MAKE) --no-print-directory all
	@BUILD=$(BUILD) scripts/run.sh

demo: ## DynamoDB Local, a shop that writes, a live tail with five handlers, and a proof that all is right: a minute
	@scripts/setup.sh build demo
	@$(MAKE) --no-print-directory all
	@BUILD=$(BUILD) examples/demo/demo.py

# ---- the package for Lambda ----

ARCH    ?= arm64
ARCHS   ?= x86_64 arm64
DEPLOY  ?= deploy
PACKAGED = $(MAKE) --no-print-directory -f scripts/package/Makefile SOURCES="$(SOURCES)" TOOL="$(TOOL)" VERSION="$(VERSION)" COMMIT="$(COMMIT)" PUBLIC="$(PUBLIC)" WARN="$(WARN)" DEPLOY="$(DEPLOY)"

# (SAM may build its functions at the same time.)
ALONE    = @mkdir -p build/package && flock -w 1800 build/package/$(1).lock

package: ## build/sluice-x86_64.zip and build/sluice-arm64.zip, or ARCHS=arm64 alone; DEPLOY=folder: its *.json and plugins, see docs/PLUGINS.md
	@scripts/setup.sh package
	+@$(PACKAGED) archive
	@$(MAKE) --no-print-directory -j2 $(ARCHS:%=package-%)

package-%:
	+$(call ALONE,$*) $(PACKAGED) ARCH=$* zip

command-%:
	+$(call ALONE,$*) $(PACKAGED) ARCH=$* command

# What the package's own Makefile knows of its folders.
packaged-%:
	@$(PACKAGED) ARCH=$(ARCH) $*

RELEASE ?= build/release
release: ## all that a release has, into build/release: tarballs, .deb, zips, images, source, sums; of a tagged commit, or SNAPSHOT=1
	@scripts/setup.sh build package release
	@$(MAKE) --no-print-directory -j$$(nproc) all
	@scripts/release/release.sh $(RELEASE)

image: ## the two container images, made without a daemon, into build/image: the command, and a function for Lambda
	@scripts/setup.sh build package release
	@SNAPSHOT=1 scripts/release/release.sh build/image image lambda-image

licenses: package ## what the zips hold of others: revision, license and source of each part (fails when one is unknown)
	@for arch in $(ARCHS); do unzip -p build/sluice-$$arch.zip sbom.cdx.json | grep -o '"name":"[^"]*","version":"[^"]*","licenses":[^]]*' | \
		sed 's/"name":"\(.*\)","version":"\(.*\)","licenses":.*:"\(.*\)".*/\1 \2  \3/' | column -t -l 3 | sed "s/^/$$arch  /"; done

sources: ## the sources of these parts, at the same revisions, into build/sources (130 MB)
	@scripts/setup.sh package
	+@$(PACKAGED) archive
	@scripts/package/sources.sh $$($(PACKAGED) where) build/sources

# `sam build` calls this, through scripts/package/ARCH/Makefile: for each of the functions, the same files.
build-SluiceFunction build-DrainFunction build-SeedFunction:
	@scripts/setup.sh package
	+$(call ALONE,$(ARCH)) $(PACKAGED) -j$$(nproc) ARCH=$(ARCH) DESTDIR=$(ARTIFACTS_DIR) install

# ---- longer runs ----

fuzz: ## make fuzz TIME=600: libFuzzer on every entry, TIME (60) seconds each; RUNS=3000: so many inputs, the same each time
	@scripts/setup.sh build check fuzz
	@BUILD=$(BUILD) TIME=$(TIME) RUNS=$(RUNS) scripts/fuzz.sh

ruler: all $(BUILD)/tests/streams/test_vectors ## make ruler CASES=20000 SEED=1: patterns against AWS's own engine, event-ruler
	@scripts/setup.sh ruler
	@BUILD=$(BUILD) tests/streams/ruler/compare.sh

SEEDS ?= 100000
FIRST ?= 1
simulate: ## make simulate SEEDS=100000 FIRST=1: for each seed a history with faults, checked by an oracle
	@scripts/setup.sh build check
	@$(MAKE) --no-print-directory $(BUILD)/tests/simulation/test_simulation $(BUILD)/tests/handlers/builtin/test_replicate_ties $(BUILD)/tests/handlers/builtin/test_view_random
	@$(BUILD)/tests/simulation/test_simulation $(SEEDS) $(FIRST)
	@$(BUILD)/tests/handlers/builtin/test_replicate_ties $(SEEDS) $(FIRST)
	@$(BUILD)/tests/handlers/builtin/test_view_random $$(( ($(SEEDS) + 9) / 10 )) $(FIRST)

leases-kcl: all ## leases handed to and fro between `sluice tail` and the Kinesis Client Library itself
	@scripts/setup.sh build check
	@BUILD=$(BUILD) tests/live/lease/kcl/compare.sh kcl
	@BUILD=$(BUILD) tests/live/lease/kcl/compare.sh kcl3

compat: all ## the release before and this tree take turns on the same state: tables, archives, parked records, checkpoints
	@scripts/setup.sh build check
	@BUILD=$(BUILD) PYTHONPATH=tests/cli python3 tests/compat/check_compat.py

tail-long: all ## the script test of tail with 20 kills while it writes; streams of 10,000 shards
	@BUILD=$(BUILD) LONG=1 PYTHONPATH=tests/cli python3 tests/cli/check_tail.py
	@BUILD=$(BUILD) LONG=1 TIMES=1 PYTHONPATH=tests/cli python3 tests/cli/check_shards.py

verify-long: all ## ten minutes of writers beside `sluice verify`: no false alarm, and every breakage found
	@scripts/setup.sh build check
	@BUILD=$(BUILD) LONG=1 PYTHONPATH=tests/cli python3 tests/cli/check_verify.py

secrets-long: all ## a secret is changed while a tail runs, and its receiver refuses the old one: twice five minutes
	@scripts/setup.sh build check
	@BUILD=$(BUILD) LONG=1 PYTHONPATH=tests/cli python3 tests/cli/check_secrets.py

redrive-long: all ## `sluice redrive` of 100,000 messages: memory is flat; and of thousands on moto
	@scripts/setup.sh build check
	@BUILD=$(BUILD) PYTHONPATH=tests/cli MESSAGES=$(or $(MESSAGES),100000) QUEUES=$(or $(QUEUES),12) python3 tests/cli/redrive_long.py

WORLDS ?= 1-40
webhook-long: all ## make webhook-long WORLDS=1-40: as many random worlds with receivers that fail half of their requests
	@scripts/setup.sh build check
	@BUILD=$(BUILD) SEEDS=$(WORLDS) tests/sinks/check_webhook.py

opensearch-long: all $(BUILD)/tests/sinks/test_ports ## long histories on OpenSearch, which is killed in mid-write; and where it forbids scripts
	@scripts/setup.sh build check
	@BUILD=$(BUILD) LONG=1 TIMES=1 python3 tests/sinks/check_opensearch.py

postgres-long: all $(BUILD)/tests/sinks/test_ports ## long histories on PostgreSQL, and connections that are cut, or lied to, at each byte (an hour)
	@scripts/setup.sh build check
	@BUILD=$(BUILD) LONG=1 TIMES=1 python3 tests/sinks/check_postgres.py

mutate: TIME = 600
mutate: ## make mutate TIME=600 FILES='streams/*.c' SEED=1: changes one token at a time, names the changes that no unit test notices
	@scripts/setup.sh build check
	@BUILD=$(BUILD) CC="$(CC)" TIME=$(TIME) COUNT="$(COUNT)" FILES="$(FILES)" SEED="$(SEED)" ONLY="$(ONLY)" GATE="$(GATE)" scripts/mutate.py

cover: ## branch coverage of each room by the unit tests, of the decoder alone with ONLY=decoder; names each branch that no test takes
	@scripts/setup.sh build check
	@BUILD=$(BUILD) scripts/cover.sh

# (The set-up first: what is compiled needs it.)
bench: ## the benchmarks, one JSON line for each figure; BENCH_SHORT=1: in seconds, to see that they run
	@scripts/setup.sh build bench package
	@$(MAKE) --no-print-directory $(BENCHES) all
	@bench/support/echo.sh $(abspath $(BUILD))/bench/echo
	@BUILD=$(BUILD) scripts/bench.sh $(BENCHES)

MEMORY_MB ?= 1000
memory: all ## make memory MEMORY_MB=1000: decode and replay need no more memory for such an input
	@BUILD=$(abspath $(BUILD)) MEMORY_MB=$(MEMORY_MB) tests/data/source/check_memory.py

bless: $(BUILD)/tests/handlers/pipeline/test_config_docs $(BUILD)/tests/handlers/builtin/test_golden ## write the generated files again: the option tables in docs/CONFIG.md, the JSON Schema, the golden table, the conditions' vectors, the plain template
	@python3 tests/handlers/builtin/golden/make.py
	@"$$(tests/package/install.sh)/bin/python" scripts/release/cloudformation.py >build/cloudformation.json && mv build/cloudformation.json deploy/cloudformation/sluice.json
	@PYTHONDONTWRITEBYTECODE=1 python3 tests/streams/vectors.py
	@for test in $^; do BLESS=1 $$test >/dev/null 2>&1 || exit 1; done; git diff --stat docs tests/handlers/builtin/golden

house: all ## how the house stands: by room its lines, its comments, and how much of it is one idea cut into files
	@BUILD=$(BUILD) scripts/house.py

capture: all ## make capture OUT=folder: all that users see and all that is stored, with times masked; for `diff -r` of two builds
	@BUILD=$(BUILD) tests/house/capture.py $(or $(OUT),$(BUILD)/capture)

clean: ## remove everything that was built
	rm -rf $(BUILD)

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

# (Every target with a line of help is one.)
.PHONY: tests list-tests $(shell sed -nE 's/^([a-z-]+):.*## .*/\1/p' $(firstword $(MAKEFILE_LIST))) build-SluiceFunction build-DrainFunction build-SeedFunction
# (Not .SECONDARY: then the stamp of a new commit would rebuild nothing.)
.PRECIOUS: $(BUILD)/%.o

-include $(OBJECTS:.o=.d) $(TOOL_OBJ:.o=.d) $(BUILD)/runtime/bootstrap.d $(BUILD)/cli/sluice.d $(patsubst %.c,$(BUILD)/%.d,$(call below,tests,*.c)) $(CORPORA:=.d) $(BENCHES:=.d)
