package decompress

import (
	"bytes"
	"io"
	"os/exec"
	"testing"
)

// Data that gzip, zstd and xz wrote is read, and other data as it is.
func TestNewReader(t *testing.T) {
	want := bytes.Repeat([]byte("~m#IF0BmUQugNCkgCnkhdAYpQa6wAAV\n"), 5000)
	for format, command := range map[string]string{"gzip": "gzip", "zstd": "zstd", "xz": "xz", "": "cat"} {
		path, err := exec.LookPath(command)
		if err != nil {
			t.Logf("%s is not installed", command)
			continue
		}
		c := exec.Command(path)
		c.Stdin = bytes.NewReader(want)
		packed, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := FormatOf(packed[:6]); got != format {
			t.Errorf("%s: format %q", command, got)
		}
		r := NewReader(format, bytes.NewReader(packed))
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", command, len(got), err)
		}
		r.Close()
	}
	for _, head := range []string{"", "\x1f", "~m#", "\x28\xb5", "\x50\x2a\x4d"} {
		if got := FormatOf([]byte(head)); got != "" {
			t.Errorf("%q: %s", head, got)
		}
	}
}
