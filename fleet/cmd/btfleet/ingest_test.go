package main

import (
	"bytes"
	"compress/gzip"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/lwsbt/lwsbt/fleet/internal/fleettest"
)

// Compressed files are read whatever their names are. The device of a log that does not name its own is
// the name of the file.
func TestIngestCompressed(t *testing.T) {
	logs := t.TempDir()
	text := bytes.Replace(fleettest.Log("d", "b", 3, 2), []byte(" dev=d"), nil, 1)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write(text)
	z.Close()
	e, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"one.log": text, "two.log.gz": zipped.Bytes(), "three.log.zst": e.EncodeAll(text, nil), "cut.gz": zipped.Bytes()[:zipped.Len()/2]} {
		if err := os.WriteFile(filepath.Join(logs, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	store := t.TempDir()
	code, out, errs := ask("ingest", "--store", store, logs)
	if want := "9 dumps of 3 devices, 1 refused\n"; code != 1 || out != want {
		t.Errorf("exit code %d, %q, want %q; %s", code, out, want, errs)
	}
	dumps, _ := stored(t, store)
	devices := map[string]int{}
	for _, d := range dumps {
		devices[d.Device]++
	}
	if want := map[string]int{"one": 3, "two": 3, "three": 3}; !maps.Equal(devices, want) {
		t.Errorf("%v, want %v", devices, want)
	}
}
