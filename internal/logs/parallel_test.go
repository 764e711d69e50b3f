package logs

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/dump"
	"github.com/lwsbt/lwsbt/profile"
	"github.com/lwsbt/lwsbt/symbol"
)

// capture reads a log of the corpus.
func capture(t *testing.T, name string) string {
	t.Helper()
	in, err := dump.Open("../../corpus/captures/"+name, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	text, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// marked puts marks between the lines of a log: headers, maps, boots, other text.
func marked(rng *rand.Rand, log string, every int) string {
	marks := []string{"~h#boot w=64\n", "~h#boot w=32\n", "~h#map t=1\n", "~h#begin %d n=5\n", "~h#begin %d u=1\n", "~h#end %d\n", "{{{reset}}}\n",
		"{{{reset}}}\n{{{module:0:app:elf:00}}}\n{{{mmap:0x55d400000000:0x20000000:load:0:rx:0}}}\n", "*** Booting Zephyr\n",
		"== heap ==\n", "~m#AAAA\n", "~m#!\n", "~b#size: 7, 0x1 0x2\n", "some text { and more {\n", "{", "no line end ~m#ABAABA== "}
	var b strings.Builder
	n := 0
	for line := range strings.Lines(log) {
		if rng.IntN(every) == 0 {
			n++
			mark := marks[rng.IntN(len(marks))]
			if strings.Contains(mark, "%d") {
				mark = fmt.Sprintf(mark, n)
			}
			b.WriteString(mark)
		}
		if rng.IntN(20) == 0 {
			b.WriteString("[2026/01/31 12:00:01:2345] N: ")
		}
		b.WriteString(line)
	}
	return b.String()
}

// different is a log of stacks that all differ.
func different(rng *rand.Rand, n int) string {
	var b strings.Builder
	var blob []byte
	for range n {
		s := codec.Stack{Size: rng.Uint64N(5000)}
		for range 2 + rng.IntN(10) {
			s.PCs = append(s.PCs, 0x55d412000000+rng.Uint64N(500)*16)
		}
		blob, _ = codec.AppendBlob(blob[:0], &s, codec.MachineWrap64, codec.SearchLws)
		b.Write(codec.AppendLine(nil, blob))
		b.WriteByte('\n')
	}
	return b.String()
}

// logCase is a log, and the flags to read it with.
type logCase struct {
	name  string
	log   string
	flags Flags
}

// logCases returns logs whose chunks are read in every way there is.
func logCases(t *testing.T, rng *rand.Rand) []logCase {
	git, perl := capture(t, "git00.log.gz"), capture(t, "perl.log.gz")
	few, many := different(rng, 1500), different(rng, 4000)
	return []logCase{
		{"repeated", strings.Repeat(perl, 5), Flags{}},
		{"different", few + many + few, Flags{}},
		{"marks", marked(rng, strings.Repeat(git[:120<<10], 3)+few, 900), Flags{}},
		{"many marks", marked(rng, strings.Repeat(perl, 4), 30), Flags{}},
		{"split", marked(rng, strings.Repeat(git[:120<<10], 3), 700), Flags{Split: "^== heap"}},
		{"split around an unreadable record", strings.Repeat(perl+"== ~m# heap ==\n", 5), Flags{Split: "^==  heap ==$"}},
		{"map", git, Flags{Maps: []string{"../../corpus/captures/git00.maps"}}},
		{"map from a line", strings.Repeat(perl, 4), Flags{Maps: []string{"../../corpus/captures/perl.maps@1500", "../../corpus/captures/cc1.maps@3000"}}},
		{"map and marks", marked(rng, git, 5000), Flags{Maps: []string{"../../corpus/captures/git00.maps"}}},
		{"word", strings.Repeat(capture(t, "i386sql.log.gz"), 4), Flags{Machine: "exact32"}},
		{"bare", strings.ReplaceAll(many, "~m#", ""), Flags{Bare: true}},
		{"no end", strings.TrimSuffix(strings.Repeat(perl, 4), "\n"), Flags{}},
		{"a long line", few + strings.Repeat("x", 300<<10) + many, Flags{}},
	}
}

// Forks change nothing: the profile of a log, the records with their addresses, counts
// and notes are those that one goroutine makes in the order of the log.
func TestForksChangeNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	cases := logCases(t, rng)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	processors := []int{1, 2, 8}
	switch {
	case testing.Short():
		processors, cases = []int{4}, cases[:5]
	case os.Getenv("LWSBT_FULL") == "":
		processors = []int{4}
	}
	for _, c := range cases {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte(c.log), 0o600); err != nil {
			t.Fatal(err)
		}
		paths := []string{path, path} // the second log begins where the first ends
		for _, run := range []struct {
			name string
			of   func(*testing.T, *Flags, []string, bool) []string
		}{{"profile", profiled}, {"records", recorded}} {
			flags := c.flags
			want := run.of(t, &flags, paths, false)
			for _, n := range processors {
				t.Run(fmt.Sprintf("%s/%s/%d", c.name, run.name, n), func(t *testing.T) {
					runtime.GOMAXPROCS(n)
					flags := c.flags
					got := run.of(t, &flags, paths, true)
					if len(got) != len(want) {
						t.Errorf("%d lines, want %d", len(got), len(want))
					}
					for i := range min(len(got), len(want)) {
						if got[i] != want[i] {
							t.Fatalf("line %d:\n%s\nwant\n%s", i, got[i], want[i])
						}
					}
				})
			}
		}
	}
}

// opened opens logs; what it notes is added to out.
func opened(t *testing.T, f *Flags, paths []string, out *[]string) *Reader {
	t.Helper()
	if err := f.Check(paths); err != nil {
		t.Fatal(err)
	}
	r, err := Open(context.Background(), f, paths, nil, func(format string, args ...any) {
		*out = append(*out, fmt.Sprintf(format, args...))
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// ending is what is to be the same when all was read.
func ending(r *Reader) string {
	y := r.Tally()
	return fmt.Sprint(r.Found(), r.Process.Counts, y.Bytes, y.Lines, y.Read, y.ByKind, y.Lenient, y.Cut, y.Unreadable, y.Faults(), y.Cuts(), r.Damaged())
}

// profiled is the profile of logs, in lines: all its paths in order, and its dumps.
func profiled(t *testing.T, f *Flags, paths []string, forks bool) (out []string) {
	r := opened(t, f, paths, &out)
	b := r.newBuilder(0)
	h := b.handler()
	if !forks {
		h.Fork = nil
	}
	if err := r.Each(h); err != nil {
		t.Fatal(err)
	}
	b.release()
	b.finish()
	var path []profile.LocationID
	for id := range b.prof.Paths() {
		line := ""
		path = b.prof.AppendPath(path[:0], profile.PathID(id))
		for _, l := range path {
			at := b.prof.LocationAt(l)
			line += fmt.Sprintf("%d %s %d %+v ", l, at.Name(), at.State, at.Frames)
		}
		out = append(out, line)
	}
	for _, d := range b.prof.Dumps {
		line := fmt.Sprint(d.Name, d.Boot, d.Number, d.File == paths[0], d.Line, d.Timed, d.Cut, d.Records, d.NoSize, d.Total)
		for id, v := range d.Values() {
			line += fmt.Sprint(" ", id, v)
		}
		out = append(out, line)
	}
	r.Notes()
	r.NoteDumps(b.prof, b.prof.Dumps)
	return append(out, ending(r))
}

// recorded is the records of logs and the text between, in lines.
func recorded(t *testing.T, f *Flags, paths []string, forks bool) (out []string) {
	r := opened(t, f, paths, &out)
	// The text between records may come in other pieces.
	handler := func(to *[]string, text *strings.Builder) Handler {
		line := func(rec *dump.Record, more string) error {
			*to = append(*to, fmt.Sprintf("%q %v %q %x %+v %v %v %v %s", text, rec.Place.Line, rec.Text, rec.Blob, rec.Stack, rec.User, rec.Err, rec.Depth, more))
			text.Reset()
			return nil
		}
		return Handler{
			Record: func(rec *dump.Record, recovery symbol.Recovery, addrs []symbol.FrameAddr) error {
				more := fmt.Sprintf("%+v", recovery)
				for _, a := range addrs {
					more += fmt.Sprintf(" %+v %v %v", a.PC, a.State, a.Reason)
				}
				return line(rec, more)
			},
			Unreadable: func(rec *dump.Record) error { return line(rec, "unreadable") },
			Header:     func(rec *dump.Record) error { return line(rec, "header") },
			Text:       func(p []byte) error { text.Write(p); return nil },
		}
	}
	var text strings.Builder
	h := handler(&out, &text)
	h.Event = h.Record
	if forks {
		h.Fork = func(int) Fork {
			var mine []string
			var rest strings.Builder
			m := handler(&mine, &rest)
			return Fork{Record: m.Record, Unreadable: m.Unreadable, Text: m.Text, Events: true,
				Begin: func() { mine = mine[:0]; rest.Reset() },
				Emit: func() error {
					if len(mine) > 0 { // what was left of the chunk before stands in front
						q := fmt.Sprintf("%q", text.String())
						mine[0] = q[:len(q)-1] + mine[0][1:]
						text.Reset()
					}
					out = append(out, mine...)
					text.WriteString(rest.String())
					return nil
				}}
		}
	}
	if err := r.Each(h); err != nil {
		t.Fatal(err)
	}
	out = append(out, text.String())
	r.Notes()
	return append(out, ending(r))
}
