package checkpoints

import "runtime/debug"

// ProgramVersion is the version of the running program: that of the module, or the commit of a build from a checkout.
// Checkpoints record it.
func ProgramVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return s.Value[:12]
		}
	}
	return info.Main.Version
}
