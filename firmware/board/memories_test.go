package board_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/export/image"
	"github.com/chiplm/chiplm/export/targets"
)

// A board without flags has what exports are planned with, and what it says of its memories adds up.
func TestMemoriesAreThoseOfThePlan(t *testing.T) {
	chip, err := targets.Load("esp32s3")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{"sram": chip.Memory(image.SRAM).Usable, "psram": chip.Memory(image.PSRAM).Usable}
	_, path := model(t)
	c := start(t, "--model", path)
	var info struct {
		Memories []struct {
			Name                                string
			Total, Free, Lent, Buffers, Weights int64
		}
	}
	if err := json.Unmarshal([]byte(c.ask("I")), &info); err != nil {
		t.Fatal(err)
	}
	for _, m := range info.Memories {
		if m.Total-m.Lent != want[m.Name] || m.Free+m.Buffers+m.Weights != m.Total {
			t.Errorf("%+v, planned with %d", m, want[m.Name])
		}
		delete(want, m.Name)
	}
	if len(want) > 0 {
		t.Errorf("not told: %v", want)
	}
	name, err := program()
	if err != nil {
		t.Fatal(err)
	}
	help, err := exec.Command(name, "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, tier := range []image.Tier{image.SRAM, image.PSRAM} {
		if said := fmt.Sprintf("(default %d", chip.Memory(tier).Usable); !strings.Contains(string(help), said) {
			t.Errorf("the help does not say %s:\n%s", said, help)
		}
	}
}
