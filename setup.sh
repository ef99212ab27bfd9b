#!/bin/sh
# Makes sure that what the build needs is here: Go, a C compiler, and on Linux OpenBLAS (macOS brings its own BLAS).
# "setup.sh arm64" is for what `make arm64` needs instead: a C compiler for arm64, and QEMU to run its programs;
# "setup.sh xtensa" the same for `make xtensa`; "setup.sh fuzz" for clang with libFuzzer, which `make fuzz` needs.
# "setup.sh page" builds the page of `chiplm page` with clang, lld and node, "setup.sh browser" is for the browser that tests it.
# Installs OpenBLAS, compilers, node, the browser and QEMU with apt where that is possible; anything else it names, and stops.
set -eu

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

command -v go >/dev/null 2>&1 || die "Go is missing. Install Go 1.25 or newer (https://go.dev/dl), then run this again."
: "${CC:=gcc}"
command -v "$CC" >/dev/null 2>&1 || die "the C compiler '$CC' is missing. Install gcc (Debian: apt-get install gcc libc6-dev), or set CC."

# go env GOVERSION obeys a toolchain line in go.mod, so it is asked outside of the module.
version=$(cd / && go env GOVERSION)
minor=$(printf '%s' "$version" | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
[ -z "$minor" ] || [ "$minor" -ge 25 ] || die "Go 1.25 or newer is needed, this is $version. Get it at https://go.dev/dl."

# install WHAT PACKAGE... installs Debian packages that bring something that is missing.
install() {
	what=$1
	shift
	command -v apt-get >/dev/null 2>&1 ||
		die "$what is missing, and there is no apt-get to install it with. In Debian it comes with: $*. Install the same, then run this again."
	sudo=
	if [ "$(id -u)" -ne 0 ]; then
		command -v sudo >/dev/null 2>&1 || die "$what is missing. As root: apt-get install $*; then run this again."
		sudo=sudo
	fi
	say "installing $*"
	export DEBIAN_FRONTEND=noninteractive
	$sudo apt-get update -qq || say "apt-get update failed; trying with the package lists at hand"
	$sudo apt-get install -y -qq --no-install-recommends "$@" >/dev/null ||
		die "apt-get could not install $*. Its message is above; install by hand, then run this again."
}

# has_arm64: a program can be compiled for arm64, and run.
has_arm64() {
	probe=$(mktemp -d)
	printf '#include <math.h>\nint main(int n, char **a) { return a[n] || sqrt(n) != 1; }\n' >"$probe/probe.c"
	if aarch64-linux-gnu-gcc "$probe/probe.c" -o "$probe/probe" -lm >/dev/null 2>&1 &&
		qemu-aarch64 -L /usr/aarch64-linux-gnu "$probe/probe" >/dev/null 2>&1; then found=0; else found=1; fi
	rm -r "$probe"
	return "$found"
}

if [ "${1:-}" = arm64 ]; then
	case "$(uname -s) $(uname -m)" in
	*aarch64 | *arm64) die "this machine is arm64 itself: make test runs all tests on it." ;;
	Linux*) ;;
	*) die "make arm64 needs Linux, this is $(uname -s): QEMU runs programs of another processor there alone." ;;
	esac
	has_arm64 && exit 0
	install "a C compiler for arm64, its C library or QEMU" gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
	has_arm64 || die "compiler and QEMU are installed, but a program for arm64 does not run. Try:
  aarch64-linux-gnu-gcc probe.c -o probe && qemu-aarch64 -L /usr/aarch64-linux-gnu probe"
	exit 0
fi

# has_xtensa: a program can be compiled for the lx106, an Xtensa processor, and run. It ends with 7 by a system call.
has_xtensa() {
	probe=$(mktemp -d)
	printf 'void _start(void) { __asm__("movi a6, 7; movi a2, 118; syscall"); }\n' >"$probe/probe.c"
	if xtensa-lx106-elf-gcc -nostdlib "$probe/probe.c" -o "$probe/probe" >/dev/null 2>&1; then
		status=0
		qemu-xtensa -cpu lx106 "$probe/probe" >/dev/null 2>&1 || status=$?
	else
		status=1
	fi
	rm -r "$probe"
	[ "$status" -eq 7 ]
}

if [ "${1:-}" = xtensa ]; then
	[ "$(uname -s)" = Linux ] ||
		die "make xtensa needs Linux, this is $(uname -s): QEMU runs single programs of another processor there alone."
	has_xtensa && exit 0
	install "a C compiler for the Xtensa lx106 or QEMU" gcc-xtensa-lx106 qemu-user
	has_xtensa || die "compiler and QEMU are installed, but a program for the lx106 does not run. Does its name appear in:
  qemu-xtensa -cpu help"
	exit 0
fi

# has_fuzzer: clang makes programs with libFuzzer and sanitizers, and they run.
has_fuzzer() {
	probe=$(mktemp -d)
	printf '#include <stddef.h>\nint LLVMFuzzerTestOneInput(const char *p, size_t n) { return p == 0 && n > 0; }\n' >"$probe/probe.c"
	if clang -fsanitize=fuzzer,address,undefined "$probe/probe.c" -o "$probe/probe" >/dev/null 2>&1 &&
		"$probe/probe" -runs=1 >/dev/null 2>&1; then found=0; else found=1; fi
	rm -r "$probe"
	return "$found"
}

if [ "${1:-}" = fuzz ]; then
	has_fuzzer && exit 0
	[ "$(uname -s)" != Darwin ] ||
		die "Apple's clang has no libFuzzer. Install LLVM (brew install llvm), and put its clang first in PATH: PATH=\$(brew --prefix llvm)/bin:\$PATH make fuzz."
	install "clang or its libFuzzer" clang libclang-rt-dev
	has_fuzzer || die "clang and libclang-rt-dev are installed, but a program with libFuzzer does not run. Try:
  clang -fsanitize=fuzzer,address probe.c, with a function LLVMFuzzerTestOneInput in it"
	exit 0
fi

# has_wasm: clang compiles for WebAssembly, and wasm-ld links that.
has_wasm() {
	probe=$(mktemp -d)
	printf 'int seven(void) { return 7; }\n' >"$probe/probe.c"
	if "${CLANG:-clang}" --target=wasm32-unknown-unknown -c "$probe/probe.c" -o "$probe/probe.o" >/dev/null 2>&1 &&
		"${WASM_LD:-wasm-ld}" --no-entry "$probe/probe.o" -o "$probe/probe.wasm" >/dev/null 2>&1; then found=0; else found=1; fi
	rm -r "$probe"
	return "$found"
}

has_node() { command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1; }

if [ "${1:-}" = page ]; then
	cd "$(dirname "$0")/firmware/web"
	if [ "$(uname -s)" = Darwin ]; then
		has_node || die "node or npm is missing. Install them (brew install node), then run this again."
		has_wasm || die "no clang for WebAssembly: Apple's is none. Install LLVM (brew install llvm lld), and name it: CLANG=\$(brew --prefix llvm)/bin/clang make build."
	fi
	has_wasm || install "clang for WebAssembly or its linker" clang lld
	has_wasm || die "clang and lld are installed, but a program for WebAssembly does not link. Try:
  clang --target=wasm32-unknown-unknown -c probe.c -o probe.o && wasm-ld --no-entry probe.o -o probe.wasm"
	has_node || install "node or npm" nodejs npm
	[ "$(node -p 'Number(process.versions.node.split(".")[0]) >= 18')" = true ] ||
		die "node 18 or newer is needed, this is $(node --version). Get it at https://nodejs.org."
	# npm notes in its own copy of the lock file what it installed.
	[ node_modules/.package-lock.json -nt package-lock.json ] ||
		npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2 ||
		die "npm could not install what package-lock.json names. Its message is above."
	exec node build.mjs
fi

if [ "${1:-}" = browser ]; then
	command -v chromium >/dev/null 2>&1 && exit 0
	[ "$(uname -s)" != Darwin ] || die "chromium is missing. Install it (brew install --cask chromium), then run this again."
	install "chromium" chromium
	exit 0
fi

[ "$(uname -s)" = Darwin ] && exit 0

has_blas() {
	probe=$(mktemp -d)
	printf '#include <cblas.h>\nint main(void) { openblas_set_num_threads(1); return 0; }\n' >"$probe/probe.c"
	if "$CC" "$probe/probe.c" -o "$probe/probe" -lopenblas >/dev/null 2>&1; then found=0; else found=1; fi
	rm -r "$probe"
	return "$found"
}

has_blas && exit 0

install "OpenBLAS" libopenblas-dev
has_blas || die "libopenblas-dev is installed, but a program that uses it does not link. Run: $CC -x c - -lopenblas"
