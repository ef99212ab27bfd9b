#!/bin/sh
# Makes sure that what the build needs is here: Go, a C compiler, and on Linux OpenBLAS (macOS brings its own BLAS).
# Installs OpenBLAS with apt where that is possible; anything else it names, and stops.
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

[ "$(uname -s)" = Darwin ] && exit 0

has_blas() {
	probe=$(mktemp -d)
	printf '#include <cblas.h>\nint main(void) { openblas_set_num_threads(1); return 0; }\n' >"$probe/probe.c"
	if "$CC" "$probe/probe.c" -o "$probe/probe" -lopenblas >/dev/null 2>&1; then found=0; else found=1; fi
	rm -r "$probe"
	return "$found"
}

has_blas && exit 0

command -v apt-get >/dev/null 2>&1 ||
	die "OpenBLAS is missing. Install its development package (cblas.h and libopenblas), then run this again."
sudo=
if [ "$(id -u)" -ne 0 ]; then
	command -v sudo >/dev/null 2>&1 || die "OpenBLAS is missing. As root: apt-get install libopenblas-dev; then run this again."
	sudo=sudo
fi
say "installing libopenblas-dev"
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq || say "apt-get update failed; trying with the package lists at hand"
$sudo apt-get install -y -qq --no-install-recommends libopenblas-dev >/dev/null ||
	die "apt-get could not install libopenblas-dev. Its message is above; install it by hand, then run this again."
has_blas || die "libopenblas-dev is installed, but a program that uses it does not link. Run: $CC -x c - -lopenblas"
