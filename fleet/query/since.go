package query

import (
	"fmt"
	"strings"
	"time"
)

// ParseSince reads the beginning of a time window: a date or a time, UTC if it has no zone, or a time
// before now, such as 7d or 12h. "" is the zero Time, which is no limit.
func ParseSince(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339, "2006-01-02T15:04"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	text, unit := s, time.Duration(1)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		text, unit = days+"h", 24
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > 1<<62/unit {
		return time.Time{}, fmt.Errorf("%q: expected a date such as 2026-06-01, a time such as 2026-06-01T12:00:00Z, or 7d or 12h before now", s)
	}
	return now.Add(-d * unit), nil
}
