package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
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

// span is the numbers of the judgements of a file: 3 to 7 replaces 3, 4 to 6, and 7.
type span struct{ first, last int }

func (s span) name(table string) string {
	return fmt.Sprintf("%s/%08d-%08d.parquet", table, s.first, s.last)
}

// spans returns the files of judgements to read, and those that others replaced, each in order, and the next number.
func (s *Store) spans() (live, replaced []span, next int, err error) {
	var all []span
	for _, table := range []string{JudgedPaths, JudgedDevices} { // the devices last: they are written last
		list, err := s.names(table + "/")
		if err != nil {
			return nil, nil, 0, err
		}
		all = all[:0]
		for _, o := range list {
			var n span
			if _, err := fmt.Sscanf(path.Base(o.Name), "%d-%d.parquet", &n.first, &n.last); err == nil {
				all, next = append(all, n), max(next, n.last)
			}
		}
	}
	for _, n := range all {
		if slices.ContainsFunc(all, func(o span) bool { return o != n && o.first <= n.first && n.last <= o.last }) {
			replaced = append(replaced, n)
		} else {
			live = append(live, n)
		}
	}
	return live, replaced, next + 1, nil
}

// PutJudged stores judgements. They replace earlier ones of their devices.
func (s *Store) PutJudged(ctx context.Context, j *Judgements) error {
	_, _, next, err := s.spans()
	for ; err == nil; next++ {
		if err = writeNew(s, span{next, next}.name(JudgedPaths), true, j.Paths); err == nil {
			return write(s, span{next, next}.name(JudgedDevices), j.Devices)
		} else if errors.Is(err, ErrExists) { // of another process
			err = nil
		}
	}
	return err
}

// minJudged is the least number of files of judgements that are merged.
const minJudged = 4

// mergeJudged merges files of judgements, the latest ones, as long as each is at most twice as large as those after it
// together; all if a device is to be left out. It keeps the last judgement of each device for which keep is true. Files that
// were replaced before are deleted.
func (s *Store) mergeJudged(keep func(*JudgedDevice) bool) error {
	live, replaced, _, err := s.spans()
	for _, n := range replaced {
		err = cmp.Or(err, s.delete(n.name(JudgedDevices)), s.delete(n.name(JudgedPaths)))
	}
	if err != nil {
		return err
	}
	type key struct{ build, device string }
	last := map[key]int64{}
	devices := make([][]JudgedDevice, len(live))
	from, sum, all := len(live), 0, false
	for i := len(live) - 1; i >= 0; i-- {
		if devices[i], err = Read[JudgedDevice](s, live[i].name(JudgedDevices)); err != nil {
			return err
		}
		if len(devices[i]) <= 2*sum || i == len(live)-1 {
			from = min(from, i)
		}
		sum += len(devices[i])
		for k := range devices[i] {
			if r := &devices[i][k]; keep(r) {
				last[key{r.Build, r.Device}] = max(last[key{r.Build, r.Device}], r.At)
			} else {
				all = true
			}
		}
	}
	if all {
		from = 0
	} else if len(live)-from < minJudged {
		return nil
	}
	var j Judgements
	for i, n := range live[from:] {
		paths, err := Read[Judged](s, n.name(JudgedPaths))
		if err != nil {
			return err
		}
		j.Devices = append(j.Devices, slices.DeleteFunc(devices[from+i], func(r JudgedDevice) bool { return last[key{r.Build, r.Device}] != r.At })...)
		j.Paths = append(j.Paths, slices.DeleteFunc(paths, func(r Judged) bool { return last[key{r.Build, r.Device}] != r.At })...)
	}
	j.Sort()
	to := span{live[from].first, live[len(live)-1].last}
	if to == live[from] { // the same name: a new number
		to.last++
	}
	if err := write(s, to.name(JudgedPaths), j.Paths); err != nil {
		return err
	}
	return write(s, to.name(JudgedDevices), j.Devices)
}

// forgetJudged deletes the judgements of devices that were judged longer ago than an age and two days; 0 is no limit.
func (s *Store) forgetJudged(age time.Duration, now time.Time) error {
	if age <= 0 {
		return nil
	}
	oldest := now.Add(-age - 48*time.Hour).UnixMicro()
	return s.mergeJudged(func(d *JudgedDevice) bool { return d.At >= oldest })
}
