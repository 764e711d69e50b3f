package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
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
	if got, want := printed(t, "query", "--store", store, "select string_agg(distinct device, ' ' order by device) as devices from dumps"), "one three two\n"; !strings.HasSuffix(got, want) {
		t.Errorf("%s, want %s at the end", got, want)
	}
}
