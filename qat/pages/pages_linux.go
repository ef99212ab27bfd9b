package pages

import "golang.org/x/sys/unix"

// hugePage is the size of huge pages on amd64, and on arm64 with pages of 4 KB.
const hugePage = 2 << 20

// advise asks for huge pages around an address. The range is widened to whole ones: the heap's memory around a slice is
// mostly other large slices, and a huge page must belong to the advised range as a whole. Parts that are not mapped are
// an error of the call, which then still holds for the rest.
func advise(address, bytes uintptr) {
	from := address &^ (hugePage - 1)
	to := (address + bytes + hugePage - 1) &^ (hugePage - 1)
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_HUGEPAGE)
}
