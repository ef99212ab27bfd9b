package parts

import (
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Types of partitions; 0x40 to 0xFE are an application's own.
const (
	TypeApp  = 0x00
	TypeData = 0x01
)

// Sizes of the table and of what it describes.
const (
	TableOffset = 0x8000 // where the table lies, unless a build says otherwise
	TableBytes  = 0xC00  // of a table in binary form, unused entries included
	sector      = 0x1000 // flash is erased by so much; the table takes one
	appAlign    = 0x10000
	entryBytes  = 32
	nameBytes   = 16
	maxFlash    = 1 << 25 // of addresses: more cannot be mapped
)

// ErrTable is wrapped by every refusal of a partition table.
var ErrTable = errors.New("bad partition table")

// Partition is an entry of the table. Offset and Size are in bytes.
type Partition struct {
	Name    string
	Type    uint8
	Subtype uint8
	Offset  uint32
	Size    uint32
	Flags   uint32
}

// End is the first byte past the partition.
func (p *Partition) End() int64 { return int64(p.Offset) + int64(p.Size) }

// Table is a partition table, in the order of its entries.
type Table []Partition

// Find is the partition of a name; nil if there is none.
func (t Table) Find(name string) *Partition {
	for i := range t {
		if t[i].Name == name {
			return &t[i]
		}
	}
	return nil
}

// FirstApp is the partition that a build is flashed to: factory, or else the first application; nil if there is none.
func (t Table) FirstApp() *Partition {
	var first *Partition
	for i := range t {
		if t[i].Type != TypeApp {
			continue
		}
		if t[i].Subtype == 0 {
			return &t[i]
		}
		if first == nil || t[i].Subtype < first.Subtype {
			first = &t[i]
		}
	}
	return first
}

// Names lists the partitions for a message.
func (t Table) Names() string {
	names := make([]string, len(t))
	for i := range t {
		names[i] = t[i].Name
	}
	return strings.Join(names, ", ")
}

// check refuses what the framework's own tools refuse: names twice, overlaps, places that are not aligned.
func (t Table) check(tableOffset uint32) error {
	if len(t) == 0 {
		return fmt.Errorf("%w: it has no entry", ErrTable)
	}
	if most := TableBytes/entryBytes - 2; len(t) > most { // the checksum and an end take an entry each
		return fmt.Errorf("%w: %d entries, of which %d fit", ErrTable, len(t), most)
	}
	order := make([]*Partition, len(t))
	for i := range t {
		order[i] = &t[i]
	}
	slices.SortStableFunc(order, func(a, b *Partition) int { return int(int64(a.Offset) - int64(b.Offset)) })
	end, before := int64(tableOffset)+sector, "the table itself"
	for _, p := range order {
		align := uint32(sector)
		if p.Type == TypeApp {
			align = appAlign
		}
		switch {
		case p.Name == "" || len(p.Name) >= nameBytes || !printable(p.Name):
			return fmt.Errorf("%w: the name %q is not 1 to %d printable characters", ErrTable, p.Name, nameBytes-1)
		case t.Find(p.Name).Offset != p.Offset:
			return fmt.Errorf("%w: two partitions are named %s", ErrTable, p.Name)
		case p.Size == 0:
			return fmt.Errorf("%w: %s has no bytes", ErrTable, p.Name)
		case p.Offset%align != 0:
			return fmt.Errorf("%w: %s starts at %#x, which is no multiple of %#x", ErrTable, p.Name, p.Offset, align)
		case int64(p.Offset) < end:
			return fmt.Errorf("%w: %s starts at %#x and %s ends at %#x", ErrTable, p.Name, p.Offset, before, end)
		case p.End() > maxFlash:
			return fmt.Errorf("%w: %s ends at %#x, past the %#x bytes that a chip can have", ErrTable, p.Name, p.End(), maxFlash)
		}
		end, before = p.End(), p.Name
	}
	return nil
}

func printable(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// The first two bytes of an entry, and of the checksum after the last.
var (
	entryMagic = []byte{0xAA, 0x50}
	md5Start   = append([]byte{0xEB, 0xEB}, bytes.Repeat([]byte{0xFF}, 14)...)
)

// ParseBinary reads the form that lies in flash: entries of 32 bytes, their MD5, then bytes of 0xFF. A table without the
// checksum, as older tools wrote, is read too. Errors wrap [ErrTable].
func ParseBinary(b []byte) (Table, error) {
	var t Table
	sum := md5.New()
	for at := 0; ; at += entryBytes {
		if at+entryBytes > len(b) || at >= TableBytes {
			return nil, fmt.Errorf("%w: it does not end within its %d bytes", ErrTable, min(len(b), TableBytes))
		}
		e := b[at : at+entryBytes]
		switch {
		case bytes.Equal(e, bytes.Repeat([]byte{0xFF}, entryBytes)):
			return t, t.check(TableOffset)
		case bytes.Equal(e[:len(md5Start)], md5Start):
			if !bytes.Equal(e[len(md5Start):], sum.Sum(nil)) {
				return nil, fmt.Errorf("%w: its checksum is wrong: it was damaged, or written in part", ErrTable)
			}
			return t, t.check(TableOffset)
		case !bytes.Equal(e[:2], entryMagic):
			return nil, fmt.Errorf("%w: entry %d starts with %#x, want %#x", ErrTable, len(t), e[:2], entryMagic)
		}
		sum.Write(e)
		name := e[12 : 12+nameBytes]
		if i := bytes.IndexByte(name, 0); i >= 0 {
			name = name[:i]
		}
		t = append(t, Partition{
			Name: string(name), Type: e[2], Subtype: e[3],
			Offset: binary.LittleEndian.Uint32(e[4:]), Size: binary.LittleEndian.Uint32(e[8:]), Flags: binary.LittleEndian.Uint32(e[28:]),
		})
	}
}

// Binary is the table as it lies in flash, [TableBytes] long.
func (t Table) Binary() []byte {
	b := make([]byte, 0, TableBytes)
	for i := range t {
		p := &t[i]
		e := make([]byte, entryBytes)
		copy(e, entryMagic)
		e[2], e[3] = p.Type, p.Subtype
		binary.LittleEndian.PutUint32(e[4:], p.Offset)
		binary.LittleEndian.PutUint32(e[8:], p.Size)
		copy(e[12:12+nameBytes-1], p.Name)
		binary.LittleEndian.PutUint32(e[28:], p.Flags)
		b = append(b, e...)
	}
	sum := md5.Sum(b)
	b = append(append(b, md5Start...), sum[:]...)
	return append(b, bytes.Repeat([]byte{0xFF}, TableBytes-len(b))...)
}
