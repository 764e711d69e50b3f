package store

import (
	"fmt"
	"testing"
)

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
	all, err := s.names("")
	if err != nil || len(all) != 3 {
		t.Errorf("%d files, %v: want 3", len(all), err)
	}
	expect(t, s, 15000)
}
