# make demo   the whole road on a small model, in minutes: train, score, export, verify, read a story
# make test   every test
# make page-test  the tests of the page, in node and in a browser
# make arm64  the tests of the arithmetic on arm64, cross-compiled and run by QEMU (Linux on another processor)
# make xtensa the C core on 32-bit Xtensa, the chip's family of processors, compiled and run the same way (Linux), and the
#             firmware compiled
# make fuzz   the C core fed with hostile images and hostile calls by libFuzzer, under sanitizers: RUNS of each; of images that
#             are accepted one in EVERY is run, in all ways. Needs clang
# make lint   gofmt, go vet, staticcheck
# make bench  Go benchmarks of every room
# make bench-torch   training speed against PyTorch, which it installs under build/: see bench/README.md

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
DEMO = build/demo
TORCH = build/torch
ARM64 = CGO_ENABLED=1 GOOS=linux GOARCH=arm64 CC=aarch64-linux-gnu-gcc \
	go test -tags noblas -exec 'qemu-aarch64 -L /usr/aarch64-linux-gnu'

FUZZ = build/fuzz
HOSTILE = engine/testdata/hostile
RUNS = 200000
EVERY = 1
SANITIZED = clang -std=c11 -ffp-contract=off -O2 -g -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all

WEB = firmware/web
PAGE = $(WEB)/dist/engine.wasm
PAGE_INPUTS = setup.sh $(WEB)/build.mjs $(WEB)/package-lock.json $(WEB)/page $(WEB)/wasm $(shell find $(WEB)/page $(WEB)/wasm -type f) \
	$(wildcard engine/*.[ch] firmware/board/*.[ch])

.PHONY: setup build test page-test arm64 xtensa fuzz lint demo bench bench-torch

setup:
	@./setup.sh

# What chiplm page serves: the module is written last, and the program carries them all.
$(PAGE): $(PAGE_INPUTS)
	@./setup.sh page

build: setup $(PAGE)
	go build -o chiplm .

test: setup $(PAGE)
	go test -timeout 14m ./...

page-test: build
	@./setup.sh browser
	cd $(WEB) && npm run --silent check && node --test --test-concurrency=1 $(patsubst $(WEB)/%,%,$(wildcard $(WEB)/tests/*.test.mjs $(WEB)/tests/browser/*.test.mjs))

# Training must give the same bytes as elsewhere, and the engine the bits of docs/numerics.md. The tests of the core
# compile it for this machine.
arm64:
	@./setup.sh arm64
	$(ARM64) ./qat/... ./arch/... ./export/clusters
	$(ARM64) -skip '^TestCore' ./engine
	$(ARM64) -run '^(TestTrainingGivesTheSameBytesEverywhere|TestGoldenLosses)$$' ./train

# A missing tool fails these tests, which otherwise skip without it. -tags noblas: they need no BLAS library.
xtensa:
	@./setup.sh xtensa
	CHIPLM_XTENSA=required go test -tags noblas -count=1 -run '^TestCore.*Xtensa' ./engine
	CHIPLM_XTENSA=required go test -tags noblas -count=1 -run '^TestXtensa' ./firmware/board

# Most changes of an image keep to the rules or break one on purpose, so libFuzzer need not learn from comparisons or count
# loops. What it finds worth keeping stays in $(FUZZ), and the next run starts from it; what fails is written there too.
fuzz:
	@./setup.sh fuzz
	@rm -rf $(addprefix $(FUZZ)/,seeds core hostile)
	@mkdir -p $(addprefix $(FUZZ)/,seeds core hostile images calls)
	@CHIPLM_FUZZ_SEEDS=$(CURDIR)/$(FUZZ)/seeds go test -tags noblas -count=1 -run '^TestWriteSeeds$$' ./engine >/dev/null
	@cd $(FUZZ)/core && $(SANITIZED) -fsanitize=fuzzer-no-link -fno-sanitize-coverage=trace-cmp -c $(CURDIR)/engine/*.c
	@cd $(FUZZ)/hostile && clang -std=c11 -O2 -g -DHOSTILE_POISON -c $(filter-out %/fuzzer.c %/replay.c,$(wildcard $(CURDIR)/$(HOSTILE)/*.c))
	@$(SANITIZED) -fsanitize=fuzzer $(HOSTILE)/fuzzer.c $(FUZZ)/hostile/*.o $(FUZZ)/core/*.o -lm -o $(FUZZ)/feed-images
	@$(SANITIZED) -fsanitize=fuzzer -DHOSTILE_CALLS $(HOSTILE)/fuzzer.c $(FUZZ)/hostile/*.o $(FUZZ)/core/*.o -lm -o $(FUZZ)/feed-calls
	@for kind in images calls; do \
		echo "$(RUNS) runs of hostile $$kind; $(FUZZ)/$$kind.log tells how far they are"; \
		CHIPLM_FUZZ_EVERY=$(EVERY) CHIPLM_FUZZ_SEEDS=$(FUZZ)/seeds $(FUZZ)/feed-$$kind -runs=$(RUNS) -max_len=16384 -len_control=0 -mutate_depth=1 \
			-entropic=0 -use_counters=0 -timeout=20 -artifact_prefix=$(FUZZ)/ $(FUZZ)/$$kind $$([ $$kind = calls ] || echo $(FUZZ)/seeds) \
			2>$(FUZZ)/$$kind.log || { tail -n 120 $(FUZZ)/$$kind.log; exit 1; }; \
		grep -a DONE $(FUZZ)/$$kind.log; \
	done

lint: setup
	@files=$$(git ls-files '*.go'); out=$$(gofmt -l $$files); \
	if [ -n "$$out" ]; then echo "gofmt -w these files:"; echo "$$out"; exit 1; fi
	go vet ./...
	go run $(STATICCHECK) ./...

demo: build
	rm -rf $(DEMO)
	./chiplm train --config demo.yaml --corpus builtin --out $(DEMO)/runs --name demo
	./chiplm eval bpb $(DEMO)/runs/demo
	./chiplm export $(DEMO)/runs/demo --target esp32s3 --out $(DEMO)/esp32s3
	./chiplm sample $(DEMO)/esp32s3/model.clm --seed 1

bench: setup
	go test -run '^$$' -bench . -benchmem ./...

bench-torch: build
	[ -x $(TORCH)/bin/python ] || python3 -m venv $(TORCH)
	$(TORCH)/bin/python -m pip install --quiet -r bench/torch/requirements.txt
	$(TORCH)/bin/python bench/torch/train.py --check
	go run ./bench/torch --python $(TORCH)/bin/python
