package query

import (
	"testing"
	"time"
)

func TestParseSince(t *testing.T) {
	now := time.Date(2026, 6, 10, 12, 0, 0, 0, time.UTC)
	for s, want := range map[string]string{"": "0001-01-01T00:00:00Z", "2026-06-01": "2026-06-01T00:00:00Z", "7d": "2026-06-03T12:00:00Z", "12h": "2026-06-10T00:00:00Z",
		"2026-06-01T10:00:00+02:00": "2026-06-01T08:00:00Z", "2026-06-01T10:00": "2026-06-01T10:00:00Z"} {
		if got, err := ParseSince(s, now); err != nil || got.UTC().Format(time.RFC3339) != want {
			t.Errorf("%q: %v, %v, want %s", s, got, err, want)
		}
	}
	for _, s := range []string{"x", "-1d", "0h", "7", "1e9d", "99999999999d", "2026-13-01"} {
		if got, err := ParseSince(s, now); err == nil {
			t.Errorf("%q: %v", s, got)
		}
	}
}
