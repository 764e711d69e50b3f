package main

import (
	"fmt"
	"strings"

	"github.com/lwsbt/lwsbt/heap/internal/leaktext"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/printable"
)

// rateLimit is the value of --fail-over: bytes per hour or per dump.
type rateLimit struct {
	text    string
	bytes   float64
	perDump bool
}

// parseRate reads SIZE/UNIT, such as 1K/h.
func parseRate(s string) (r rateLimit, err error) {
	if s == "" {
		return r, nil
	}
	size, unit, _ := strings.Cut(s, "/")
	n, err := cli.ParseSize(size)
	hours, ok := map[string]float64{"s": 1.0 / 3600, "min": 1.0 / 60, "h": 1, "day": 24, "week": 168, "dump": 1}[unit]
	if err != nil || !ok {
		return r, fmt.Errorf("--fail-over %q, expected SIZE/UNIT, such as 1K/h: the unit is s, min, h, day, week or dump", s)
	}
	return rateLimit{s, float64(n) / hours, unit == "dump"}, nil
}

// checkLimit makes --fail-over the error of the command after the report, if the leaks exceed it.
func (l *leaks) checkLimit(found *growth.Leaks) error {
	err := l.over(found)
	if cli.Code(err) == cli.Short {
		l.outcome = err
		return nil
	}
	return err
}

// over returns an error if the leaks exceed --fail-over, or if it needs times that the log lacks.
func (l *leaks) over(found *growth.Leaks) error {
	switch excess, unit := l.excess(found); {
	case unit != "":
		return cli.Usagef("--fail-over %s: %s", l.limit.text, unit)
	case excess != "":
		return cli.Shortf("%s (--fail-over)", excess)
	}
	return nil
}

// excess returns by what the leaks exceed --fail-over, "" if they do not. unit is why that cannot be told
// with the unit of --fail-over, "" if it can.
func (l *leaks) excess(found *growth.Leaks) (excess, unit string) {
	switch {
	case l.limit.text == "":
		return "", ""
	case found.Used == 0:
		return l.heapsExcess(found)
	case found.Per != growth.PerHour && !l.limit.perDump:
		return "", "the dumps have no times: give SIZE/dump"
	}
	sum := 0.0
	for _, r := range found.Leaking() {
		if r.Sure() {
			sum += r.Rate
		}
	}
	per := "hour"
	if l.limit.perDump {
		per = "dump"
		if found.Per == growth.PerHour {
			sum *= found.Span.Hours() / float64(found.Used-found.Boots)
		}
	}
	return l.exceeds(sum, per), ""
}

// heapsExcess is excess for a log without dumps: a heap shrinks, and its unit may be a report.
func (l *leaks) heapsExcess(found *growth.Leaks) (excess, unit string) {
	for i := range found.Heaps {
		t := &found.Heaps[i]
		switch {
		case !t.Sure():
		case (t.Per == growth.PerHour) == l.limit.perDump:
			return "", fmt.Sprintf("the rate of the heap is per %s: give SIZE/%s", t.Per, map[bool]string{true: "h", false: "dump"}[l.limit.perDump])
		default:
			if excess := l.exceeds(t.Rate, string(t.Per)); excess != "" {
				if t.Name != "" {
					excess = leaktext.HeapName(t) + " " + excess
				}
				return excess, ""
			}
		}
	}
	return "", ""
}

// exceeds returns that a rate is more than the limit, "" if it is not.
func (l *leaks) exceeds(rate float64, per string) string {
	if rate <= l.limit.bytes {
		return ""
	}
	return fmt.Sprintf("leaks %s bytes per %s, more than %s", printable.Signed(rate), per, l.limit.text)
}
