package input

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Files of one moment, whatever their names, have one order: that of age.
func TestRotationOrder(t *testing.T) {
	dir := t.TempDir()
	want := []string{".1.gz", "-20261121", ".9000", ".10", ".2", ".1", ""}
	now := time.Now()
	var list []rotated
	for _, suffix := range want {
		path := filepath.Join(dir, "log"+suffix)
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		when := now
		if suffix == ".1.gz" {
			when = now.Add(-time.Second)
		}
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, rotated{path, info, rotation(strings.TrimLeft(suffix, ".-"))})
	}
	for range 100 {
		rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		slices.SortStableFunc(list, rotated.compare)
		var got []string
		for _, r := range list {
			got = append(got, strings.TrimPrefix(r.info.Name(), "log"))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q, want %q", got, want)
		}
	}
}
