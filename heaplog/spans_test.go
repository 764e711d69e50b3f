package heaplog_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/dump"
	"github.com/lwsbt/lwsbt/heaplog"
)

// Items finds the same records, text and counts as dump.Scanner.
func TestSpansAreThoseOfDump(t *testing.T) {
	var logs []string
	paths, _ := filepath.Glob("../corpus/captures/*.log*")
	for _, name := range append(paths, "../corpus/serial.log") {
		in, err := dump.Open(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		in.Close()
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, string(text), strings.Repeat(string(text), 3))
	}
	rng := rand.New(rand.NewPCG(5, 6))
	parts := []string{readme, twoPads, urlText, tooDeep, unpad, readme[:20], "~b#size: 1, 0x2", "~h#begin 1 u=1\n", "~h#end 1\n", "~e#AAA", "~h#boot", " tail", "\n", "\r\n",
		readme[3:], "x", "~", "~m", tooDeep[:187]}
	for range 2000 {
		var b strings.Builder
		for range 60 {
			b.WriteString(parts[rng.IntN(len(parts))])
			if rng.IntN(2) == 0 {
				b.WriteByte('\n')
			}
		}
		logs = append(logs, b.String())
	}
	records := 0
	for i, log := range logs {
		for _, bare := range []bool{false, true} {
			var want, got bytes.Buffer
			sc := dump.NewScanner(strings.NewReader(log), "log")
			sc.Bare, sc.Recordings = bare, true
			for sc.Next() {
				r := sc.Record()
				records++
				kind := r.Kind.String()
				if r.Err != nil && !r.Cut {
					kind = "unreadable"
				}
				fmt.Fprintln(&want, r.Place, kind, string(r.Text), r.Blob, r.Stack, r.User, r.Err, r.Cut, r.CutByLws, r.Sized, r.Lenient)
				if r.Cut {
					fmt.Fprintln(&want, r.Depth)
				}
			}
			options := []heaplog.Option{heaplog.Stream(&pieces{strings.NewReader(log), rng}, "log"), heaplog.Unnamed()}
			if i%2 == 0 {
				options[0] = heaplog.Stream(strings.NewReader(log), "log")
			}
			if bare {
				options = append(options, heaplog.Bare())
			}
			r, err := heaplog.Open(t.Context(), options...)
			if err != nil {
				t.Fatal(err)
			}
			var sum strings.Builder
			for it, err := range r.Items() {
				if err != nil {
					continue
				}
				sum.Write(it.Text)
				if it.Kind == heaplog.Text || it.Kind == heaplog.Idle {
					continue
				}
				e := dump.Record{}
				if it.Stack != nil {
					e.Stack = *it.Stack
				}
				if it.User != nil {
					e.User = *it.User
				}
				c := heaplog.Cut{}
				if it.Cut != nil {
					c = *it.Cut
				}
				fmt.Fprintln(&got, it.Place, it.Kind, string(it.Text), it.Blob, e.Stack, e.User, it.Err, it.Cut != nil, c.ByLws, c.Sized, it.Lenient)
				if it.Cut != nil {
					fmt.Fprintln(&got, c.Depth)
				}
			}
			if sum.String() != log {
				t.Fatalf("log %d: the texts are not the log", i)
			}
			if got.String() != want.String() {
				os.WriteFile("/tmp/hl/got", got.Bytes(), 0o600)
				os.WriteFile("/tmp/hl/want", want.Bytes(), 0o600)
				t.Fatalf("log %d: bare %v: differ", i, bare)
			}
			s, w := r.Summary(), sc.Tally()
			if s.Lines != w.Lines || s.Bytes != w.Bytes || s.Readable() != w.Read+w.Cut || s.Lenient != w.Lenient || s.Records[heaplog.Unreadable] != w.Unreadable || s.CutByLws != w.CutByLws {
				t.Fatalf("log %d: %+v\n%+v", i, s, w)
			}
		}
	}
	t.Log(len(logs), records)
}
