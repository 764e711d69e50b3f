package store

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Judged is what a device says of one of its call paths with a build, by package leak: the values of the path
// are judged when dumps of the device arrive, and questions add up the rows. Sizes are in bytes, rates in bytes
// per hour, of a path without times per dump.
type Judged struct {
	Build  string  `parquet:"build,dict"`
	Device string  `parquet:"device,dict"`
	Path   int64   `parquet:"path,dict"`
	At     int64   `parquet:"judged_at,dict"` // Unix time in µs of the judgement, that of its JudgedDevice
	Boots  int64   `parquet:"boots,dict"`     // examined
	Seen   int64   `parquet:"seen,dict"`      // boots that have the path
	Weight float64 `parquet:"weight"`         // leak.Judgement.Weight
	Shape  float64 `parquet:"shape"`          // leak.Judgement.Shape
	Rate   float64 `parquet:"rate"`
	Err    float64 `parquet:"err"`   // standard error of Rate
	Since  int64   `parquet:"since"` // Unix time in µs, 0 for since the first dump
	Net    float64 `parquet:"net"`   // mean of the last third of a boot, less that of the first third; per boot
	Swing  float64 `parquet:"swing"` // largest less least value
	Level  float64 `parquet:"level"` // mean of the first third of a boot
	Early  float64 `parquet:"early"` // rate from the first to the middle third of the boots
	Late   float64 `parquet:"late"`  // rate from the middle to the last third
	Jump   float64 `parquet:"jump"`  // change from the end of a boot to the begin of the next, sum
	Grown  float64 `parquet:"grown"` // growth in the boots before these, sum
}

// JudgedDevice is the judgement of a device with a build: a row for each, which makes the rows of Judged with the same At
// count.
type JudgedDevice struct {
	Build   string  `parquet:"build,dict"`
	Device  string  `parquet:"device,dict"`
	At      int64   `parquet:"judged_at"`  // Unix time in µs of the judgement
	Rule    int64   `parquet:"rule,dict"`  // version of the model, see query.Rule
	Boot    int64   `parquet:"boot"`       // of the last dump
	Dump    int64   `parquet:"dump"`       // the last dump
	Boots   int64   `parquet:"boots,dict"` // examined: with three dumps or more
	Timed   bool    `parquet:"timed"`      // rates are per hour
	Ended   float64 `parquet:"ended"`      // hours, median length of the boots that ended; -1 if they are fewer than three
	Longest float64 `parquet:"longest"`    // hours, of the longest boot
	Uptime  float64 `parquet:"uptime"`     // hours, of the last dump
	Free    int64   `parquet:"free"`       // bytes after the last dump, -1 if not known, or if there are several heaps
	// Heap is the one of several heaps that is full first by its own growth; if none leaks, it has the names of all, and HeapRate is 0.
	Heap     string  `parquet:"heap,dict"`
	HeapFree int64   `parquet:"heap_left"`
	HeapRate float64 `parquet:"heap_rate"`
	Heaps    int64   `parquet:"heaps,dict"` // number of named heaps
}

// Judgements are rows that are stored together.
type Judgements struct {
	Devices []JudgedDevice
	Paths   []Judged
}

// Sort sorts the rows by build, device and path.
func (j *Judgements) Sort() {
	slices.SortFunc(j.Devices, func(a, b JudgedDevice) int {
		return cmp.Or(cmp.Compare(a.Build, b.Build), cmp.Compare(a.Device, b.Device), cmp.Compare(a.At, b.At))
	})
	slices.SortFunc(j.Paths, func(a, b Judged) int {
		return cmp.Or(cmp.Compare(a.Build, b.Build), cmp.Compare(a.Device, b.Device), cmp.Compare(a.Path, b.Path))
	})
}

// judgedTables are the tables of judgements. The first is written last: without it, readers ignore the others.
var judgedTables = []string{JudgedDevices, JudgedPaths}

// PutJudged stores judgements. They replace earlier ones of their devices.
func (s *Store) PutJudged(ctx context.Context, j *Judgements) error {
	return s.putJudged(j, fmt.Sprintf("%020d-%08x", time.Now().UnixNano(), rand.Uint32()), "")
}

func (s *Store) putJudged(j *Judgements, base, replaces string) error {
	if err := write(s, part("").name(JudgedPaths, base), j.Paths, ""); err != nil {
		return err
	}
	return write(s, part("").name(JudgedDevices, base), j.Devices, replaces)
}

// mergeJudged merges files of judgements, all if a device is to be left out. It keeps the last judgement of each device for
// which keep is true. It deletes files that were replaced more than grace ago.
func (s *Store) mergeJudged(grace time.Duration, keep func(*JudgedDevice) bool) error {
	parts, err := s.parts(JudgedDevices)
	if err != nil || len(parts) == 0 {
		return err
	}
	c := parts[0]
	if err := s.clean(&c, judgedTables, grace); err != nil {
		return err
	}
	type key struct{ build, device string }
	last := map[key]int64{}
	devices := map[string][]JudgedDevice{} // by file
	all := false
	for _, base := range c.live {
		rows, err := Read[JudgedDevice](s, c.name(JudgedDevices, base))
		if err != nil {
			return err
		}
		devices[base] = rows
		for i := range rows {
			if r := &rows[i]; keep(r) {
				last[key{r.Build, r.Device}] = max(last[key{r.Build, r.Device}], r.At)
			} else {
				all = true
			}
		}
	}
	merged := c.live
	if !all {
		merged = inputs(c.live, math.MaxInt64, func(base string) int64 { return int64(len(devices[base])) })
	}
	if len(merged) == 0 {
		return nil
	}
	var j Judgements
	for _, base := range merged {
		paths, err := Read[Judged](s, c.name(JudgedPaths, base))
		if err != nil {
			return err
		}
		j.Devices = append(j.Devices, slices.DeleteFunc(devices[base], func(r JudgedDevice) bool { return last[key{r.Build, r.Device}] != r.At })...)
		j.Paths = append(j.Paths, slices.DeleteFunc(paths, func(r Judged) bool { return last[key{r.Build, r.Device}] != r.At })...)
	}
	j.Sort()
	if err := s.putJudged(&j, compactedName(len(j.Paths)), c.replacing(merged)); err != nil {
		return err
	}
	c.replaced = append(c.replaced, merged...)
	c.since = time.Now()
	return s.clean(&c, judgedTables, grace)
}
