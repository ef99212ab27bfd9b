package web

import (
	"fmt"
	"path/filepath"

	"github.com/chiplm/chiplm/data/regular"
	"github.com/chiplm/chiplm/export"
	"github.com/chiplm/chiplm/export/parts"
)

// firmware is a build for the chip, as the page is told of it.
type firmware struct {
	Chip       string         `json:"chip"`
	Version    string         `json:"version"` // that the application says of itself; "": none
	Files      []firmwareFile `json:"files"`
	Partitions []partition    `json:"partitions"`
}

type firmwareFile struct {
	Name    string `json:"name"`
	Offset  uint32 `json:"offset"`
	Bytes   int64  `json:"bytes"`
	SHA256  string `json:"sha256"`
	URL     string `json:"url"`
	content []byte
}

type partition struct {
	Name    string `json:"name"`
	Type    uint8  `json:"type"`
	Subtype uint8  `json:"subtype"`
	Offset  uint32 `json:"offset"`
	Bytes   uint32 `json:"bytes"`
}

// mostFirmware is the largest part of a firmware, in bytes.
const mostFirmware = 1 << 25

// carried is the first folder among what a user named that chiplm export put firmware into; "": there is none.
func carried(names []string) string {
	for _, name := range names {
		if m, err := export.ReadManifest(name); err == nil && m.Firmware != "" {
			return name
		}
	}
	return ""
}

// openFirmware reads a build folder as chiplm flash does.
func openFirmware(dir string) (*firmware, error) {
	chip, err := parts.ChipNamed(targetName)
	if err != nil {
		return nil, err
	}
	fw, err := parts.OpenFirmware(dir, chip)
	if err != nil {
		return nil, err
	}
	if fw.Table.Find(parts.ModelPartition) == nil {
		return nil, fmt.Errorf("%s: its partition table has no partition %q (%s): is it chiplm's firmware?", dir, parts.ModelPartition, fw.Table.Names())
	}
	f := &firmware{Chip: chip.Name, Version: fw.Version}
	for i, name := range []string{parts.Bootloader, parts.TableFile, parts.App} {
		p := &fw.Parts[i]
		b, err := regular.ReadFile(p.Path, mostFirmware)
		if err != nil {
			return nil, err
		}
		if int64(len(b)) != p.Bytes {
			return nil, fmt.Errorf("%s changed while it was read: is it being built? Start again when that is over", filepath.Clean(p.Path))
		}
		f.Files = append(f.Files, firmwareFile{Name: p.Name, Offset: p.Offset, Bytes: p.Bytes, SHA256: hashOf(b), URL: "firmware/" + name, content: b})
	}
	for _, p := range fw.Table {
		f.Partitions = append(f.Partitions, partition{p.Name, p.Type, p.Subtype, p.Offset, p.Size})
	}
	return f, nil
}
