package train

import (
	"bufio"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// memory is what this process may still take.
type memory struct {
	bytes  float64 // 0: not known
	source string  // what sets the limit
}

// least keeps the tighter of two limits; bytes below 1 count as one byte, since 0 means not known.
func (m *memory) least(bytes float64, source string) {
	if bytes = max(bytes, 1); m.bytes == 0 || bytes < m.bytes {
		m.bytes, m.source = bytes, source
	}
}

// systemMemory reads Linux's files, with root as "/": what the machine has to spare, and the limits of the control
// groups that this process is in. What cannot be read is not known.
func systemMemory(root fs.FS) (free memory) {
	if kb, ok := field(root, "proc/meminfo", "MemAvailable:"); ok {
		free.least(kb*1024, "available on this machine")
	}
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return free
	}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // number, controllers, group
		if len(parts) != 3 {
			continue
		}
		switch {
		case parts[1] == "": // version 2
			free.group(root, "sys/fs/cgroup", parts[2], "memory.max", "anon")
		case strings.Contains(","+parts[1]+",", ",memory,"):
			free.group(root, "sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes", "total_rss")
		}
	}
	return free
}

// group takes in the limits of a control group and of those above it. Inside a container the folder of the group may
// not be visible; the limit is then that of the mount itself. Cached files count against a group but give way, so what
// is used is the memory of programs alone.
func (m *memory) group(root fs.FS, mount, group, limit, used string) {
	for dir := path.Join(mount, group); ; dir = path.Dir(dir) {
		text, err := fs.ReadFile(root, path.Join(dir, limit))
		if bytes, bad := strconv.ParseFloat(strings.TrimSpace(string(text)), 64); err == nil && bad == nil && bytes < 1<<60 {
			inUse, _ := field(root, path.Join(dir, "memory.stat"), used)
			m.least(bytes-inUse, "by the limit of the control group")
		}
		if len(dir) <= len(mount) {
			return
		}
	}
}

// field finds the number behind a word that begins a line.
func field(root fs.FS, name, word string) (float64, bool) {
	f, err := root.Open(name)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if parts := strings.Fields(s.Text()); len(parts) >= 2 && parts[0] == word {
			n, err := strconv.ParseFloat(parts[1], 64)
			return n, err == nil
		}
	}
	return 0, false
}
