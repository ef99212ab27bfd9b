package configs

import "strings"

// parseSet reads a --set argument, KEY=VALUE, into a tree with that one key. rank orders the arguments.
func parseSet(set string, rank int) (*node, error) {
	shown := set
	if r := []rune(shown); len(r) > 80 {
		shown = string(r[:80]) + "..."
	}
	at := position{source: "--set " + shown, rank: rank}
	key, value, ok := strings.Cut(set, "=")
	key = strings.TrimSpace(key)
	if !ok || key == "" {
		return nil, at.errorf("", "want KEY=VALUE, such as --set train.lr=0.003")
	}
	if key == "extends" {
		return nil, at.errorf(key, "cannot be set here; name the other file with --config")
	}
	parts := strings.Split(key, ".")
	if len(parts) > maxNested {
		return nil, at.errorf("", "no key of a model file has so many parts")
	}
	n, err := parseTree(at, []byte(value), key)
	if err != nil {
		return nil, err
	}
	if n.null {
		return nil, at.errorf(key, "has no value; write %s=VALUE", key)
	}
	for i := len(parts) - 1; i >= 0; i-- {
		n = &node{at: at, mapping: true, entries: []entry{{key: parts[i], at: at, value: n}}}
	}
	return n, nil
}
