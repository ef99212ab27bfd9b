package port

import (
	"fmt"
	"slices"
	"strings"

	"go.bug.st/serial/enumerator"
)

// Candidate is a port on USB.
type Candidate struct {
	Name   string `json:"port"`
	ID     string `json:"usb"` // vendor and product, such as 303A:1001
	What   string `json:"what"`
	Serial string `json:"serial,omitempty"`
	Board  bool   `json:"board"` // by its USB numbers a chip of this family, on its own USB port
}

// boards are the USB numbers of the chip: its built-in serial port, and the one of the framework's USB library.
var boards = map[string]string{"303A:1001": "ESP32-S3, built-in USB", "303A:4001": "ESP32-S3, USB library"}

// List lists the ports on USB, those of boards first.
func List() ([]Candidate, error) {
	ports, err := enumerator.GetDetailedPortsList()
	if err != nil {
		return nil, fmt.Errorf("list serial ports: %w", err)
	}
	var out []Candidate
	for _, p := range ports {
		if !p.IsUSB || macTwin(p.Name) {
			continue
		}
		c := Candidate{Name: p.Name, ID: strings.ToUpper(p.VID + ":" + p.PID), What: p.Product, Serial: p.SerialNumber}
		if what, ok := boards[c.ID]; ok {
			c.What, c.Board = what, true
		}
		out = append(out, c)
	}
	slices.SortStableFunc(out, func(a, b Candidate) int {
		if a.Board != b.Board {
			if a.Board {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out, nil
}

// macTwin says whether a port is the one for incoming calls, which on a Mac stands beside each other port.
func macTwin(name string) bool { return strings.HasPrefix(name, "/dev/tty.") }

// Find is the port of the one board that is there. Errors: [ErrNone], [ErrMany].
func Find() (string, error) {
	all, err := List()
	if err != nil {
		return "", err
	}
	return choose(all)
}

func choose(all []Candidate) (string, error) {
	n := 0
	for n < len(all) && all[n].Board {
		n++
	}
	switch {
	case n == 1:
		return all[0].Name, nil
	case n > 1:
		return "", fmt.Errorf("%w are plugged in: name one with --port: %s", ErrMany, names(all[:n]))
	case len(all) > 0:
		return "", fmt.Errorf("%w of an ESP32-S3: plug its USB port in (on some boards the one marked USB, not UART), or name a port with --port: %s", ErrNone, names(all))
	}
	return "", fmt.Errorf("%w of an ESP32-S3, and no other on USB: plug the board in, with a cable that carries data; or start a virtual one with chiplm board --virtual", ErrNone)
}

// seen tells which ports there are, for a message.
func seen() string {
	all, err := List()
	if err != nil || len(all) == 0 {
		return "No port on USB is there"
	}
	return "There is " + names(all)
}

func names(all []Candidate) string {
	list := make([]string, len(all))
	for i, c := range all {
		list[i] = c.Name + " (" + c.ID
		if c.What != "" {
			list[i] += ", " + c.What
		}
		list[i] += ")"
	}
	return strings.Join(list, ", ")
}
