package parts

import (
	"fmt"
	"strconv"
	"strings"
)

var types = map[string]uint8{"app": TypeApp, "data": TypeData}

// subtypes by type; ota_0 to ota_15 are read apart.
var subtypes = map[uint8]map[string]uint8{
	TypeApp: {"factory": 0x00, "test": 0x20},
	TypeData: {
		"ota": 0x00, "phy": 0x01, "nvs": 0x02, "coredump": 0x03, "nvs_keys": 0x04, "efuse": 0x05, "undefined": 0x06,
		"esphttpd": 0x80, "fat": 0x81, "spiffs": 0x82, "littlefs": 0x83,
	},
}

var flags = map[string]uint32{"encrypted": 1 << 0, "readonly": 1 << 1}

// ParseCSV reads partitions.csv: lines of name, type, subtype, offset, size and flags. An empty offset follows the
// partition before. Sizes may end in K or M. Errors wrap [ErrTable] and name the line.
func ParseCSV(text []byte) (Table, error) {
	var t Table
	end := int64(TableOffset + sector)
	for n, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		p, err := parseLine(line, end)
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrTable, n+1, err)
		}
		end = p.End()
		t = append(t, *p)
	}
	return t, t.check(TableOffset)
}

func parseLine(line string, end int64) (*Partition, error) {
	fields := strings.Split(line, ",")
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	if len(fields) < 5 || len(fields) > 6 && strings.Join(fields[6:], "") != "" {
		return nil, fmt.Errorf("%d fields, want name, type, subtype, offset, size and perhaps flags", len(fields))
	}
	p := &Partition{Name: fields[0]}
	var err error
	if p.Type, err = named("type", fields[1], types); err != nil {
		return nil, err
	}
	switch sub := fields[2]; {
	case sub == "" && p.Type == TypeApp:
		return nil, fmt.Errorf("an application needs a subtype, such as factory")
	case sub == "":
		p.Subtype = subtypes[TypeData]["undefined"]
	case p.Type == TypeApp && strings.HasPrefix(sub, "ota_"):
		slot, err := strconv.ParseUint(sub[len("ota_"):], 10, 8)
		if err != nil || slot > 15 {
			return nil, fmt.Errorf("subtype %s: slots are ota_0 to ota_15", sub)
		}
		p.Subtype = 0x10 + uint8(slot)
	default:
		if p.Subtype, err = named("subtype", sub, subtypes[p.Type]); err != nil {
			return nil, err
		}
	}
	if p.Offset, err = place(fields[3], p.Type, end); err != nil {
		return nil, err
	}
	if p.Size, err = size(fields[4]); err != nil {
		return nil, fmt.Errorf("size: %w", err)
	}
	if len(fields) > 5 {
		for _, f := range strings.Split(fields[5], ":") {
			bit, ok := flags[f]
			if f != "" && !ok {
				return nil, fmt.Errorf("flag %q: encrypted and readonly are known", f)
			}
			p.Flags |= bit
		}
	}
	return p, nil
}

// named reads a number of 8 bits, or a name for one.
func named(what, s string, names map[string]uint8) (uint8, error) {
	if v, ok := names[s]; ok {
		return v, nil
	}
	v, err := strconv.ParseUint(s, 0, 8)
	if err != nil || v == 0xFF {
		return 0, fmt.Errorf("%s %q is neither a known name nor a number up to 0xFE", what, s)
	}
	return uint8(v), nil
}

// place is the offset of a partition: as written, or the next place that is aligned.
func place(s string, kind uint8, end int64) (uint32, error) {
	if s != "" {
		v, err := size(s)
		if err != nil {
			return 0, fmt.Errorf("offset: %w", err)
		}
		return v, nil
	}
	align := int64(sector)
	if kind == TypeApp {
		align = appAlign
	}
	at := (end + align - 1) / align * align
	if at > maxFlash {
		return 0, fmt.Errorf("there is no room after %#x", end)
	}
	return uint32(at), nil
}

// size reads a number of bytes, such as 0x6000, 24K or 1M.
func size(s string) (uint32, error) {
	digits, unit := s, uint64(1)
	if !strings.HasPrefix(strings.ToLower(s), "0x") && s != "" {
		switch s[len(s)-1] {
		case 'k', 'K':
			digits, unit = s[:len(s)-1], 1<<10
		case 'm', 'M':
			digits, unit = s[:len(s)-1], 1<<20
		}
	}
	v, err := strconv.ParseUint(digits, 0, 32)
	if err != nil || v*unit > maxFlash {
		return 0, fmt.Errorf("%q is no number of bytes up to %#x: write 0x6000, 24K or 1M", s, maxFlash)
	}
	return uint32(v * unit), nil
}
