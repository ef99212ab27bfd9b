//go:build race

package train

// raceDetector is on: its own notes about memory grow.
const raceDetector = true
