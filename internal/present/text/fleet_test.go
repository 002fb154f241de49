package text

import (
	"testing"

	"github.com/ashlar-mem/ashlar/internal/fleet/answers"
)

func TestAgeText(t *testing.T) {
	for us, want := range map[int64]string{0: "0s", 59_999_999: "59s", 61e6: "1m 1s", 3600e6: "1h 0m", 86399e6: "23h 59m", 10 * 86400e6: "10d 0h", -61e6: "-1m 1s"} {
		if got := ageText(us); got != want {
			t.Errorf("%d: %s, want %s", us, got, want)
		}
	}
}

func TestFleetFix(t *testing.T) {
	for want, f := range map[string]answers.CauseFix{
		"max_split_size_mb:512": {Kind: "setting", Settings: "max_split_size_mb:512"}, "keep tensors on the host: cpu()": {Kind: "cpu"}, "of a later version": {Kind: "of a later version"},
	} {
		if got := fleetFix(&f); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
