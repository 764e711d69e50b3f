//go:build linux

package memtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// bomb writes a log in which few bytes stand for much.
type bomb struct {
	text []byte
	w    callpath.Writer
	t    *testing.T
}

func newBomb(t *testing.T) *bomb {
	return &bomb{text: []byte("~h#boot dev=d1 code=8000000+8000000 shift=0\n"), t: t}
}

func (b *bomb) add(e callpath.Entry) {
	var err error
	if b.text, err = b.w.Append(b.text, &e); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bomb) begin(number int, keys string) {
	b.w.Dump = uint32(number)
	b.text = fmt.Appendf(b.text, "~h#begin %d%s t=%d\n", number, keys, (number+1)*1_000_000)
}

func (b *bomb) end(number int) { b.text = fmt.Appendf(b.w.Flush(b.text), "~h#end %d\n", number) }

// deep returns dumps of paths that continue one path of 999 frames by its name: 7 to 12 bytes of log
// for a call path of 1,000 frames.
func deep(t *testing.T, dumps, paths int) []byte {
	b := newBomb(t)
	for d := range dumps {
		b.begin(d, "")
		var outer callpath.Path
		for n := 0; n < 999; n = len(outer.Frames) {
			e := callpath.Entry{Definition: true}
			if n > 0 {
				e.Path = callpath.Path{Base: callpath.Named, Outer: outer.Name()}
			}
			for range min(40, 999-n) {
				f := callpath.Frame{Value: uint64(1000 + 3*len(outer.Frames))}
				e.Frames, outer.Frames = append(e.Frames, f), append(outer.Frames, f)
			}
			b.add(e)
		}
		for i := range paths {
			b.add(callpath.Entry{Path: callpath.Path{Base: callpath.Named, Outer: outer.Name(),
				Frames: []callpath.Frame{{Value: uint64(200_000 + i)}}}, Live: uint64(1 + d), Bytes: uint64(8 + 8*d)})
		}
		b.end(d)
	}
	return b.text
}

// differences returns a dump, and dumps that are differences, each from the one before, of 20 paths.
func differences(t *testing.T, dumps, paths int) []byte {
	b := newBomb(t)
	add := func(i int, bytes uint64) {
		b.add(callpath.Entry{Path: callpath.Path{Frames: []callpath.Frame{{Value: uint64(1000 + i)}}}, Live: 1, Bytes: bytes})
	}
	b.begin(0, "")
	for i := range paths {
		add(i, 8)
	}
	b.end(0)
	for d := 1; d <= dumps; d++ {
		b.begin(d, fmt.Sprintf(" k=diff base=%d", d-1))
		for i := range 20 {
			add((d*7919+i*31)%paths, uint64(8+d))
		}
		b.end(d)
	}
	return b.text
}

// mostPerByte is in bytes of memory per further byte of a log. Most commands take 30 to 50, and up to 80
// in some runs, as garbage is collected sooner or later. A frame of its own for each frame of a path
// would take 600 at least, and a value of its own for each path of a difference 700.
const mostPerByte = 120

// The memory of a command is in proportion to the log, whatever the log says.
func TestBombs(t *testing.T) {
	cmdtest.Long(t)
	dir := t.TempDir()
	for _, name := range []string{"../../cmd/btdecode", "../../cmd/btheap", "../../../cmd/btstats"} {
		cmd := exec.Command("go", "build", "-o", dir, name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
		}
	}
	file := func(name string, text []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	type pair struct{ few, many string }
	one := pair{file("one-few", deep(t, 1, 25_000)), file("one-many", deep(t, 1, 100_000))}
	three := pair{file("three-few", deep(t, 3, 10_000)), file("three-many", deep(t, 3, 50_000))}
	diffs := pair{file("diffs-few", differences(t, 100, 5000)), file("diffs-many", differences(t, 800, 5000))}
	for _, c := range []struct {
		args string
		log  pair
	}{
		{"btdecode -F jsonl", one}, {"btstats", one}, {"btheap dumps", one}, {"btheap top --json --stacks -n 0", one},
		{"btheap tree --callers --min 0", one}, {"btheap html", one}, {"btheap export -F pprof", one}, {"btheap export -F dhat", one},
		{"btheap leaks --json", three}, {"btheap diff -n 0", three}, {"btheap html", three},
		{"btheap dumps", diffs}, {"btheap leaks --json", diffs}, {"btheap html", diffs},
	} {
		t.Run(c.args+" "+filepath.Base(c.log.many), func(t *testing.T) {
			run := func(name string) (peak, size float64) {
				info, err := os.Stat(name)
				if err != nil {
					t.Fatal(err)
				}
				peak, _ = measure(t, strings.Fields(dir+"/"+c.args+" "+name))
				return peak, float64(info.Size())
			}
			a, n := run(c.log.few)
			b, m := run(c.log.many)
			perByte := (b - a) / (m - n)
			t.Logf("%.0f and %.0f bytes of log: %.1f and %.1f MB, %.1f bytes per further byte", n, m, a/1e6, b/1e6, perByte)
			if perByte > mostPerByte {
				t.Errorf("%.1f bytes of memory per further byte of log, want at most %d", perByte, mostPerByte)
			}
		})
	}
}
