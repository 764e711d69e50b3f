package store

import (
	"archive/zip"
	"fmt"
	"os"
	"testing"
)

// A store of schema 1, which has files for each build and no labels, is read, compacted, and added to: two dumps of build b0
// with 98 bytes, eight of b1 with 387, of five devices.
func TestSchema1(t *testing.T) {
	z, err := zip.OpenReader("testdata/schema1.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	dir := t.TempDir()
	if err := os.CopyFS(dir, z); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, s, 98+387)
	u, err := s.Uploads(t.Context())
	if err != nil || len(u.last) != 5 || u.last["dev-3"].Build != "b1" || u.last["dev-3"].Bytes != 48 {
		t.Errorf("%+v %v", u.last, err)
	}
	for i := range 6 {
		put(t, s, batch(fmt.Sprint("new", i), "dev-3", fmt.Sprint("new", i), 1))
	}
	expect(t, s, 98+387+6)
	for range 2 {
		if err := s.Compact(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, s, 98+387+6)
	list, err := s.Snapshot(t.Context(), "")
	if err != nil || len(list.Dumps) != 2+1+1 { // two of b0 are too few to compact
		t.Errorf("%q %v", list.Dumps, err)
	}
	if _, err := s.Retain(t.Context(), Retention{Age: 1}, day.AddDate(1, 0, 0)); err != nil {
		t.Fatal(err)
	}
	expect(t, s, 0)
}

// A batch is one file of each table, however many builds devices name.
func TestManyBuilds(t *testing.T) {
	s := open(t)
	b := &Batch{Name: "many", Day: day}
	for i := range 5000 {
		o := batch("", fmt.Sprint("d", i), fmt.Sprint("u", i), 3)
		build := fmt.Sprint("build", i)
		o.Dumps[0].Build, o.Facts[0].Build, o.Paths[0].Build = build, build, build
		b.Dumps, b.Facts, b.Paths = append(b.Dumps, o.Dumps...), append(b.Facts, o.Facts...), append(b.Paths, o.Paths...)
	}
	put(t, s, b)
	all, err := s.names(t.Context(), "")
	if err != nil || len(all) != 3 {
		t.Errorf("%d files, %v: want 3", len(all), err)
	}
	expect(t, s, 15000)
}
