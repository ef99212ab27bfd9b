package digits

import (
	"math"
	"testing"
)

func TestComma(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1: "-1", -123: "-123", -1234567: "-1,234,567",
		math.MaxInt64: "9,223,372,036,854,775,807", math.MinInt64: "-9,223,372,036,854,775,808",
	} {
		if got := Comma(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	if got := Comma(uint64(math.MaxUint64)); got != "18,446,744,073,709,551,615" {
		t.Errorf("have %s", got)
	}
}
