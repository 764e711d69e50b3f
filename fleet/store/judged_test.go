package store

import (
	"fmt"
	"testing"
	"time"
)

// Files of judgements are merged, and the last judgement of each device stays. Old ones are deleted with the days of dumps.
func TestJudged(t *testing.T) {
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 6, 30, 0, 0, 0, 0, time.UTC)
	for i := range 6 {
		at := now.AddDate(0, 0, i-6).UnixMicro()
		j := &Judgements{}
		for _, device := range []string{"always", fmt.Sprint("once", i)} {
			j.Devices = append(j.Devices, JudgedDevice{Build: "b", Device: device, At: at})
			j.Paths = append(j.Paths, Judged{Build: "b", Device: device, Path: 1, At: at, Rate: float64(i)})
		}
		if err := s.PutJudged(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
	rows := func() (rates map[string]float64, files int) {
		list, err := s.Snapshot(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		rates = map[string]float64{}
		for _, name := range list[JudgedPaths] {
			paths, err := Read[Judged](s, name)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range paths {
				rates[p.Device] = max(rates[p.Device], p.Rate)
			}
		}
		return rates, len(list[JudgedPaths])
	}
	if _, files := rows(); files != 6 {
		t.Fatalf("%d files, want 6", files)
	}
	for range 2 { // the second deletes what the first replaced
		if err := s.Compact(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	if rates, files := rows(); files != 1 || len(rates) != 7 || rates["always"] != 5 || rates["once2"] != 2 {
		t.Errorf("%d files: %v", files, rates)
	}
	if _, err := s.Retain(t.Context(), Retention{Age: 24 * time.Hour}, now); err != nil {
		t.Fatal(err)
	}
	if rates, files := rows(); files != 1 || len(rates) != 4 || rates["always"] != 5 {
		t.Errorf("after three days: %d files: %v", files, rates)
	}
	names, err := s.names(JudgedPaths + "/")
	if err != nil || len(names) > 2 {
		t.Errorf("%d files are left, %v", len(names), err)
	}
}
