# make demo   why a real run died, and the setting that saves it
# make test   everything CI checks
# make help   the rest

GO     ?= go
BIN    := bin/ashlar
DEMO   := testdata/snapshots/gpt2_fixed-tight-default.pickle.gz

# All builds share their cache: with and without -trimpath each package is compiled twice.
export GOFLAGS := $(strip $(shell $(GO) env GOFLAGS) -trimpath)
# One package more than there are cores is tested at a time: some only wait.
PARALLEL := -p $(shell expr 1 + $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1))

.PHONY: sanitize vuln claims tenants tenants-mixes policies policies-hard bench-policies lib gpu build engine site demo test test-all lint unit race race-all invariants invariants-all fuzz-short fuzz bench bench-device bench-load bench-replay bench-view bench-plan bench-host host attack attack-table dist dist-test dist-host truth advice watch deaths tune web typecheck browser browser-matrix browser-firefox mcp-check screenshots pictures help bench-live fleet fleet-faults fleet-places fleet-bars

build: engine
	$(GO) build -trimpath -o $(BIN) ./cmd/ashlar

# The server of the page as WebAssembly, which ashlar embeds for report --interactive.
# Functions of these packages are not inlined: they are not what takes time, and the
# engine becomes a tenth smaller.
ENGINE := internal/view/offline/engine
COLD   := fmt encoding/json regexp/... net/... mime math/big log crypto/... time os reflect strconv syscall/... bufio context encoding/... hash/... html io/... path/... text/... unicode/... \
	$(addprefix github.com/ashlar-mem/ashlar/,settings snapshot/message snapshot/stats snapshot/recorder internal/answer/... internal/input \
	internal/plan/... internal/playground internal/present/... internal/prognosis internal/safetensors internal/spelling internal/test/... internal/view/...)
engine:
	@tools/scripts/setup
	@echo GOOS=js GOARCH=wasm $(GO) build -o bin/engine.wasm ./cmd/ashlar-wasm
	@GOOS=js GOARCH=wasm $(GO) build -trimpath -ldflags '-s -w' $(COLD:%=-gcflags=%=-l) -o bin/engine.wasm ./cmd/ashlar-wasm
	@test $(ENGINE)/ashlar.wasm.gz -nt bin/engine.wasm || { gzip -9nc bin/engine.wasm > bin/engine.wasm.gz && mv bin/engine.wasm.gz $(ENGINE)/ashlar.wasm.gz; }
	@cp "$$($(GO) env GOROOT)/lib/wasm/wasm_exec.js" $(ENGINE)/

# A folder to put on any web server, or to open from the disk: a page onto which files are dropped. Nothing leaves the browser.
site: build
	@mkdir -p bin/site
	$(BIN) report --interactive -o bin/site/index.html

demo: build
	@echo
	@echo "A training run under a limit of 7609 MiB died of fragmentation. Why, and which setting saves it?"
	@echo
	@echo "\$$ ashlar explain --limit 7609MiB $(DEMO)"
	@$(BIN) explain --limit 7609MiB $(DEMO)
	@echo
	@echo "\$$ ashlar tune --limit 7609MiB $(DEMO)"
	@$(BIN) tune --limit 7609MiB $(DEMO)

test: lint unit typecheck race invariants fuzz-short browser dist-host
	@echo "all tests passed"

# What users install, into dist: wheels, archives, a Debian package, an image. The same sources give the same bytes.
dist: engine
	@tools/scripts/setup gcc g++ aarch64-linux-gnu-g++
	$(GO) -C tools run ./dist

# Installs and uses what make dist made, in empty environments.
dist-test:
	@test -f dist/SHA256SUMS || $(MAKE) dist
	@tools/scripts/setup python3 venv
	$(GO) -C tools run ./dist -check

# The same for the wheel of this machine alone.
dist-host: engine
	@tools/scripts/setup python3 venv
	$(GO) -C tools run ./dist -host -out bin/dist
	$(GO) -C tools run ./dist -host -out bin/dist -check

# What takes too long for every change: nothing is left out or shortened.
test-all: test race-all invariants-all browser-matrix browser-firefox
	@echo "all tests passed, the long ones too"

lint:
	@tools/scripts/setup gcc python3 mallocs static-mallocs musl-gcc
	$(GO) -C tools build -o ../bin/tools/ mvdan.cc/gofumpt honnef.co/go/tools/cmd/staticcheck
	@out=$$(bin/tools/gofumpt -l .); test -z "$$out" || { echo "not formatted (bin/tools/gofumpt -w .):"; echo "$$out"; exit 1; }
	$(GO) vet ./...
	GOOS=js GOARCH=wasm $(GO) vet ./cmd/ashlar-wasm ./internal/view/http
	cd browsertests && $(GO) vet ./...
	cd tools && $(GO) vet ./...
	bin/tools/staticcheck ./...
	cd tools && ../bin/tools/staticcheck ./...
	@if command -v python3 >/dev/null; then python3 tools/bench/torch/table.py --selftest && python3 -B tools/bench/gpu/bars.py --selftest; fi
	@if command -v python3 >/dev/null; then python3 -B -m unittest discover -q -s python; fi

# Known vulnerabilities of what is called. It needs the network, for the program and for its database.
GOVULNCHECK := v1.1.4
vuln:
	GOBIN=$(CURDIR)/bin/tools $(GO) install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK)
	bin/tools/govulncheck ./...
	cd tools && ../bin/tools/govulncheck ./...

# lint has run vet already.
unit:
	$(GO) test -vet=off $(PARALLEL) ./...
	$(GO) -C tools test -vet=off $(PARALLEL) ./...

# The race detector needs cgo, and so a C compiler. race takes the whole of every
# package whose own code starts goroutines or locks, under -short, where slow tests
# do less; race-all takes all packages, the command, the planner and the generator of programs too, and leaves nothing out.
CONCURRENT = $(shell grep -rlE '\bgo func|\.Go.func|\bsync\.|\batomic\.|\bspin\.|\bparallel\.|chan struct' --include='*.go' alloc cmd driver internal settings snapshot trace \
	| grep -v -e _test.go -e /testdata/ -e cmd/ashlar -e internal/plan/ -e internal/replay/generate | xargs -n1 dirname | sort -u | sed 's,^,./,')
race:
	@if command -v $${CC:-gcc} >/dev/null; then \
		set -ex; export CGO_ENABLED=1; $(GO) test -vet=off $(PARALLEL) -race -short $(CONCURRENT); \
	else echo "race: left out, there is no C compiler"; fi
race-all:
	@if command -v $${CC:-gcc} >/dev/null; then \
		set -ex; export CGO_ENABLED=1; $(GO) test -vet=off -race -timeout 2h ./...; $(GO) -C tools test -vet=off -race -timeout 2h ./...; \
	else echo "race: left out, there is no C compiler"; fi

# The C side of libashlar.so by itself under the compiler's sanitizers: threads, addresses, undefined behaviour. Then the
# tests of the whole library, whose C and C++, the programs that call it and the stand-ins for PyTorch and CUDA are compiled with the last two.
sanitize:
	CGO_ENABLED=1 $(GO) test ./cmd/libashlar -run TestSanitizers -count 1 -v
	CGO_ENABLED=1 ASHLAR_SANITIZE=address,undefined $(GO) test ./cmd/libashlar -count 1

# The invariants of the engine are checked after every operation, and tensors of
# a plan that are gone are spoilt.
invariants: HOW := -short
invariants-all: HOW := -timeout 2h
invariants invariants-all:
	$(GO) test -vet=off -tags invariants $(HOW) ./alloc/... ./internal/replay/... ./internal/plan/eager ./internal/plan/hf

# The parsers of files that come from elsewhere. A count, not a time: go fails a
# fuzzer whose last input is still running when its time is up.
FUZZRUNS ?= 20000x
fuzz-short:
	$(GO) test ./internal/pickle -run '^$$' -fuzz FuzzDecode -fuzztime $(FUZZRUNS) -fuzzminimizetime 10x
	$(GO) test ./snapshot -run '^$$' -fuzz FuzzRead -fuzztime $(FUZZRUNS) -fuzzminimizetime 10x
	$(GO) test ./snapshot/stats -run '^$$' -fuzz FuzzParse -fuzztime $(FUZZRUNS) -fuzzminimizetime 10x
	$(GO) test ./snapshot/message -run '^$$' -fuzz FuzzParse -fuzztime $(FUZZRUNS) -fuzzminimizetime 10x
	$(GO) test ./internal/dry -run '^$$' -fuzz FuzzRead -fuzztime $(FUZZRUNS) -fuzzminimizetime 10x

# All fuzzers, for FUZZTIME each.
FUZZTIME ?= 10m
FUZZERS  := internal/watch:FuzzRules internal/watch:FuzzBlock internal/pickle:FuzzDecode snapshot:FuzzRead snapshot/stats:FuzzParse snapshot/message:FuzzParse \
	settings:FuzzParse alloc:FuzzScript internal/playground:FuzzPlay internal/units:FuzzParse internal/replay/oracle:FuzzRead \
	internal/plan/model:FuzzRead internal/safetensors:FuzzRead internal/safetensors:FuzzIndex internal/yaml:FuzzParse \
	internal/dry:FuzzRead internal/hub:FuzzReadBlock internal/hostmem/detect:FuzzImage internal/hostmem/proc:FuzzSmaps
fuzz:
	@set -e; for f in $(FUZZERS); do \
		echo "./$${f%:*} $${f#*:}"; $(GO) test ./$${f%:*} -run '^$$' -fuzz $${f#*:} -fuzztime $(FUZZTIME) -fuzzminimizetime 10x; \
	done

bench:
	$(GO) test ./alloc ./alloc/arena ./alloc/handle -run '^$$' -bench . -benchtime 1s -cpu 1

# For a machine with a GPU, PyTorch 2.11 and a C++ compiler, but without Go:
# carry bin/alloc.test there and run tools/bench/torch/run.sh bin/alloc.test.
bench-device:
	CGO_ENABLED=0 $(GO) test -c -o bin/alloc.test ./alloc

# The allocator for PyTorch: python/ashlar_torch.py finds it in bin.
lib:
	@tools/scripts/setup gcc
	$(GO) build -trimpath -buildmode=c-shared -o bin/libashlar.so ./cmd/libashlar

# For a machine with a GPU and no Go: carry bin/gpu there. tools/bench/gpu/README.md says what to run.
gpu:
	@tools/scripts/setup gcc
	$(GO) build -trimpath -ldflags '-s -w' -buildmode=c-shared -o bin/gpu/libashlar.so ./cmd/libashlar
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o bin/gpu/ ./cmd/ashlar
	CGO_ENABLED=0 $(GO) -C tools build -trimpath -ldflags '-s -w' -o ../bin/gpu/ ./gpucheck
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o bin/gpu/examples/ ./examples/...
	CGO_ENABLED=0 $(GO) test -ldflags '-s -w' -c -o bin/gpu/cuda.test ./driver/cuda

# Reading speed and memory beside Python's pickle.load, on generated files.
bench-load: build
	tools/scripts/bench-load

# The page of ashlar view, and the types of what it gets. Both are committed; a test compares them with what would be made.
web:
	$(GO) -C tools run ./webbuild

# Types are checked where Node is: the bundle itself needs none.
typecheck:
	@if command -v npm >/dev/null && (cd web && npm ci --silent --no-audit --no-fund >/dev/null 2>&1); then \
		cd web && npm run --silent check && npm run --silent vendor-check && echo "types of the page checked"; \
	else echo "typecheck: left out, there is no npm or its packages cannot be had"; fi

# The page in a real browser.
browser: build
	@tools/scripts/setup chromium
	@if command -v chromium >/dev/null; then cd browsertests && $(GO) test -count 1 ./...; \
	else echo "browser: left out, there is no chromium"; fi

# The page in every browser of Chromium's family that there is, and its layout from
# 640 to 3840 px, light and dark.
BROWSERS ?= chromium chromium-browser google-chrome google-chrome-beta google-chrome-unstable microsoft-edge brave-browser
browser-matrix: build
	@for b in $(BROWSERS); do if path=$$(command -v $$b); then \
		echo "the page in $$path"; (cd browsertests && CHROMIUM=$$path $(GO) test -count 1 . -whole) || exit 1; \
	fi; done

# The same tests in Firefox, but for printing. Firefox is driven by its own remote
# agent (WebDriver BiDi): nothing else is needed.
browser-firefox: build
	@tools/scripts/setup firefox-esr
	@if command -v firefox-esr >/dev/null; then cd browsertests && BROWSER=firefox $(GO) test -count 1 .; \
	else echo "browser-firefox: left out, there is no firefox-esr"; fi

# ashlar mcp with the client of npm.
mcp-check: build
	@if command -v npm >/dev/null && (cd tools/mcpcheck && npm ci --silent --no-audit --no-fund >/dev/null 2>&1); then \
		node tools/mcpcheck/check.mjs $(BIN) testdata; \
	else echo "mcp-check: left out, there is no npm or its packages cannot be had"; fi

# Every screen, light and dark, into bin/screenshots.
screenshots: build
	cd browsertests && $(GO) run ./cmd/screenshots -ashlar ../bin/ashlar -out ../bin/screenshots \
		../testdata/snapshots/gpt2_varlen-tight-default.pickle.gz ../testdata/snapshots/leak_graph-default.pickle.gz

# The README's pictures, light and dark, two pixels for one.
pictures: build
	cd browsertests && ASHLAR_SHARP=2 $(GO) run ./cmd/screenshots -ashlar ../bin/ashlar -readme ../docs/images

# How fast the page is with a million events: the figures of docs/measured/view.md.
bench-view: build
	cd browsertests && $(GO) run ./cmd/bench-view -ashlar ../bin/ashlar

# The screen Live with 200 jobs for ten minutes: the figures of docs/measured/watch.md.
bench-live: build
	$(GO) -C tools build -trimpath -o ../bin/watchload ./watchload
	cd browsertests && $(GO) run ./cmd/bench-live -ashlar ../$(BIN) -watchload ../bin/watchload -shots ../bin/screenshots

# Events a second of what-if runs on one core; memory beside that of reading.
bench-replay: build
	$(GO) test ./internal/replay -run '^$$' -bench Run -benchtime 1s -cpu 1
	tools/scripts/bench-replay

# Planned and measured peaks: the tables of docs/measured/plan.md. It fails if a bar does.
bench-plan:
	$(GO) -C tools run ./plandiff -table

# The workloads and the service of docs/measured/host.md under every malloc, twenty minutes,
# and what measuring itself costs.
HOST_PORT ?= 8471
host: build
	$(BIN) host bench
	$(BIN) host run --repeat 5 --ready http://127.0.0.1:$(HOST_PORT)/ --load 'python3 testdata/host/load.py $(HOST_PORT) 2000' \
		--for 60s -o bin/host.svg -- python3 testdata/host/server.py $(HOST_PORT)

bench-host:
	$(GO) test ./internal/hostmem/proc -run '^$$' -bench .
	$(GO) test ./internal/hostmem/run -run '^$$' -bench Overhead -benchtime 1x

# Hostile inputs for every command and the page: no crash, one-line errors, time and memory within the budget, sums that are right.
# Part of it is a test (TestAttack of cmd/ashlar). CORPUS is a folder of further files; findings go to bin/attack.
SEED    ?= 1
MINUTES ?= 10
attack: build
	$(GO) -C tools build -o ../bin/tools/ ./attack
	bin/tools/attack -root . -bin $(BIN) -keep bin/attack -seed $(SEED) -minutes $(MINUTES) $(if $(CORPUS),-corpus $(CORPUS))

# Time and memory of every command over the hostile files that the repository keeps, and those in CORPUS.
attack-table: build
	$(GO) -C tools build -o ../bin/tools/ ./attack
	@bin/tools/attack -root . -bin $(BIN) -keep bin/attack -table $(if $(CORPUS),-corpus $(CORPUS))

# What-if against runs that were measured on a GPU under every setting: the table of docs/measured/whatif.md.
truth:
	@mkdir -p bin
	$(GO) test ./internal/replay -count 1 -v -run TestMeasured -table $(CURDIR)/bin/truth.md
	@cat bin/truth.md

# explain against mistakes that were recorded on a GPU, and the fixes that were tried there: testdata/advice.
advice:
	@mkdir -p bin
	@$(GO) test ./internal/answer/explain -count 1 -run 'TestAdvice$$' -table $(CURDIR)/bin/advice.md; code=$$?; cat bin/advice.md; exit $$code
	@for set in blind blind2; do echo "$$set, not held to the bars:"; \
		$(GO) test ./internal/answer/explain -count 1 -run 'TestAdviceBlind$$' -blind $$set -table $(CURDIR)/bin/advice-blind.md && cat bin/advice-blind.md; done

# How far a run would have got, against thousands of deaths made from complete recordings; the table of docs/measured/prognosis.md.
deaths:
	$(GO) test ./internal/prognosis -count 1 -v -run TestDeaths -limits 100 -timeout 1h

# Every goal of tune on the twenty whole runs: the tables of docs/measured/tune.md.
tune:
	@mkdir -p bin
	$(GO) test ./internal/answer/tune -count 1 -timeout 1h -run 'TestGoalsOnAllRuns|TestSameTwice' -table $(CURDIR)/bin/tune.md
	@cat bin/tune.md

# ashlar watch under 200 and 1,000 jobs, killed meanwhile, and with a week of history: the table of
# docs/measured/watch.md. A real Prometheus scrapes it, where there is one.
watch: build
	@tools/scripts/setup prometheus
	$(GO) -C tools run ./watchload -ashlar ../$(BIN)
	$(GO) test ./internal/watch -count 1 -run TestPrometheus -prometheus

# Truth planted in 1,000 snapshots: does ashlar fleet find every commit that grew, every odd rank and every cause, and no other?
fleet: build
	$(GO) -C tools run ./fleetcheck

bin/nats-server: go.mod
	$(GO) build -o $@ github.com/nats-io/nats-server/v2

# Processes of a fleet are killed, frozen and cut off, and its disk is full; in a folder, on three servers, and on an unmodified nats-server.
# A short form is in make test.
fleet-faults: bin/nats-server
	ASHLAR_NATS_SERVER=$(CURDIR)/bin/nats-server $(GO) test ./internal/fleet -count 1 -timeout 1h -long -v -run 'TestFaults|TestNetwork|TestCluster|TestFull|TestAside|TestTune'
	$(GO) test ./internal/watch -count 1 -timeout 30m -long -v -run 'TestForward'

# What the store and the fleet promise, in a folder, on three servers, and on an unmodified nats-server; make test has it, too.
fleet-places: bin/nats-server
	ASHLAR_NATS_SERVER=$(CURDIR)/bin/nats-server $(GO) test ./internal/hub ./internal/fleet -count 1 -timeout 30m -v

# The figures of docs/fleet.md.
fleet-bars: build
	@tools/scripts/setup chromium
	rm -rf bin/fleet-store && mkdir -p bin/fleet-store
	$(GO) test ./internal/fleet -count 1 -timeout 2h -bars -bars-store $(CURDIR)/bin/fleet-store -v -run 'TestBar'
	cd browsertests && $(GO) test -count 1 -v -run TestFleetMany -fleet-store $(CURDIR)/bin/fleet-store
	rm -rf bin/fleet-store

# The twenty whole runs under every allocator: the tables of docs/policies.md. It fails if a bar does.
policies:
	@mkdir -p bin
	$(GO) test ./internal/answer/policies -count 1 -timeout 1h -run 'TestTwentyRuns' -table $(CURDIR)/bin/policies.md
	@cat bin/policies.md

# Static plans of the hard placement problems, a minute for each.
policies-hard:
	@mkdir -p bin
	$(GO) test ./internal/answer/policies -count 1 -timeout 1h -run 'TestHardProblems' -table $(CURDIR)/bin/policies-hard.md
	@cat bin/policies-hard.md

# What is said about GPU memory, tested on the recordings and by plans: docs/claims.md. Rows of a GPU: tools/bench/gpu/claims.py.
claims: build
	$(GO) -C tools run ./claims -ashlar ../$(BIN)

# Calls a second of every online strategy on one core.
bench-policies:
	$(GO) test ./internal/answer/policies -run '^$$' -bench Calls -benchtime 1s -cpu 1

# Recorded runs that share a GPU: the table of docs/tenants.md. It fails if a bar does.
tenants:
	@mkdir -p bin
	@$(GO) test ./internal/answer/tenants -count 1 -run 'TestBars$$' -table $(CURDIR)/bin/tenants.md; code=$$?; cat bin/tenants.md; exit $$code

# A thousand random mixes of the recorded runs: no request within a guarantee fails.
tenants-mixes:
	$(GO) test ./internal/answer/tenants -count 1 -v -run TestRandomMixes -mixes 1000

help:
	@echo "make demo          why a real run died of fragmentation, and the setting that saves it"
	@echo "make test          lint, unit tests, race detector, invariants, each parser's fuzzer for a while, the page in a browser, the wheel in an empty environment"
	@echo "make test-all      the same, then the race detector and the invariants on all of it, the page in every browser"
	@echo "make browser       the page in Chromium: what make test does of it"
	@echo "make browser-matrix   the page in all Chromiums, its layout from 640 to 3840 px, light and dark"
	@echo "make browser-firefox  the page in Firefox ESR"
	@echo "make mcp-check     ashlar mcp with the client of npm (docs/mcp.md)"
	@echo "make build         build $(BIN)"
	@echo "make bench         benchmarks of the engine"
	@echo "make lib           build bin/libashlar.so, the allocator for PyTorch (docs/gpu.md)"
	@echo "make dist          what users install, into dist: wheels, archives, a Debian package, an image (docs/install.md)"
	@echo "make dist-test     install and use what is in dist, and build it once more"
	@echo "make gpu           build what is carried to a machine with a GPU into bin/gpu (tools/bench/gpu/README.md)"
	@echo "make bench-device  build bin/alloc.test to be timed beside PyTorch (tools/bench/torch/README.md)"
	@echo "make bench-load    time and memory of reading snapshots, beside Python's pickle.load"
	@echo "make bench-replay  speed and memory of what-if runs and of tune"
	@echo "make bench-view    speed and memory of the page with a million events"
	@echo "make bench-live    the screen Live with 200 jobs: how soon it is there, how often it changes, its memory"
	@echo "make bench-plan    planned peaks beside those that were measured on a GPU"
	@echo "make host          every malloc under the workloads and the service of docs/measured/host.md"
	@echo "make bench-host    what it costs to measure processes"
	@echo "make fleet         ashlar fleet over 1,000 snapshots in which the truth is planted"
	@echo "make fleet-faults  its processes killed, frozen and cut off, its disk full; in a folder, on three servers and on nats-server"
	@echo "make fleet-places  the suites of its store and of the fleet, in a folder, on three servers and on nats-server"
	@echo "make fleet-bars    the figures of docs/fleet.md"
	@echo "make watch         ashlar watch under load, killed, with a week of history, and under Prometheus"
	@echo "make screenshots   every screen of the page, light and dark"
	@echo "make pictures      the README's pictures"
	@echo "make web           rebuild the page's bundle"
	@echo "make site          the page without a server, into bin/site: files are dropped onto it"
	@echo "make tune          what tune finds for twenty runs, for every goal"
	@echo "make policies      twenty runs under every other allocator (docs/policies.md); policies-hard: static plans of hard problems, bench-policies: speed"
	@echo "make claims        what is said about GPU memory, tested: docs/claims.md"
	@echo "make tenants       recorded runs that share a GPU: tenants, one engine, a hard split"
	@echo "make tenants-mixes a thousand random mixes of the recorded runs"
	@echo "make truth         what-if against 260 runs that were measured on a GPU"
	@echo "make advice        explain against mistakes that were recorded on a GPU"
	@echo "make attack        hostile inputs for every command and the page, SEED=$(SEED) MINUTES=$(MINUTES) (docs/measured/hardening.md)"
	@echo "make sanitize      the C side of libashlar.so under the compiler's sanitizers"
	@echo "make vuln          known vulnerabilities of what is called, by govulncheck"
	@echo "make attack-table  time and memory of every command over the hostile files"
	@echo "make fuzz          run every fuzzer for FUZZTIME ($(FUZZTIME))"
