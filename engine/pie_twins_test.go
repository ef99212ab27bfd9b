package engine

import (
	"strings"
	"testing"
)

func TestPieTwinUnknown(t *testing.T) {
	if _, err := PieTwin("chiplm_pie_none", nil); err == nil || !strings.Contains(err.Error(), "no twin") {
		t.Errorf("a kernel that is not there: %v", err)
	}
}
