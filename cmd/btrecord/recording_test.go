//go:build linux

package main

import (
	"bufio"
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/symbol"
)

// block is a live allocation as a recording has it.
type block struct {
	addr, size uint64
	stack      []string // module+offset, innermost first
}

// event is a ~e# record.
type event struct {
	kind, addr, old, size, time, thread uint64
	stack                               []string
}

// recorded is what a recording says, read line by line by codec and symbol. Every
// line must be understood.
type recorded struct {
	boots  []codec.Header
	dumps  []recordedDump
	events []event
	totals []codec.Header
	loads  int // ~h#load and ~h#map after the first
}

type recordedDump struct {
	begin, end codec.Header
	blocks     []block
}

func (d *recordedDump) bytes() (n uint64) {
	for _, b := range d.blocks {
		n += b.size
	}
	return n
}

// last returns the last dump.
func (r *recorded) last(t testing.TB) recordedDump {
	t.Helper()
	if len(r.dumps) == 0 {
		t.Fatal("the recording has no dump")
	}
	return r.dumps[len(r.dumps)-1]
}

func readRecording(t testing.TB, path string) *recorded {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) == 0 || text[len(text)-1] != '\n' {
		t.Fatalf("%s: %d bytes that do not end with a line", path, len(text))
	}
	return parseRecording(t, text)
}

func parseRecording(t testing.TB, text []byte) *recorded {
	t.Helper()
	var r recorded
	process, err := symbol.NewProcess(symbol.Config{NoFiles: true})
	if err != nil {
		t.Fatal(err)
	}
	defer process.Close()
	place := func(s *codec.Stack) (stack []string) {
		for _, pc := range s.PCs {
			at := "?"
			if l := process.Locate(pc - 1).Location; l != nil && l.Module != nil {
				at = l.Module.Name[strings.LastIndexByte(l.Module.Name, '/')+1:] + "+0x" + hex(l.Own+1)
			}
			stack = append(stack, at)
		}
		return stack
	}
	var stack codec.Stack
	var user codec.User
	get := func(tag codec.Tag) uint64 { v, _ := user.Get(tag); return v }
	var open *recordedDump
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		line := lines.Bytes()
		var err error
		switch {
		case bytes.HasPrefix(line, []byte("~m#")):
			var blob []byte
			if blob, err = codec.ParseLine(nil, line); err == nil {
				err = codec.DecodeUser(&stack, &user, blob, 64)
			}
			if open == nil {
				t.Fatalf("line %d: a record outside a dump", n)
			}
			open.blocks = append(open.blocks, block{get(codec.TagAddress), stack.Size, place(&stack)})
		case bytes.HasPrefix(line, []byte("~e#")):
			var blob []byte
			if blob, err = codec.ParseEventLine(nil, line); err == nil {
				err = codec.DecodeEvent(&stack, &user, blob, 64)
			}
			r.events = append(r.events, event{get(codec.TagEvent), get(codec.TagAddress), get(codec.TagOldAddress),
				stack.Size, get(codec.TagTime), get(codec.TagThread), place(&stack)})
		case bytes.HasPrefix(line, []byte("~h#")):
			var h codec.Header
			if err = codec.ParseHeader(&h, line); err != nil {
				break
			}
			switch h.Verb {
			case codec.VerbBoot:
				r.boots = append(r.boots, h)
			case codec.VerbBegin:
				r.dumps = append(r.dumps, recordedDump{begin: h})
				open = &r.dumps[len(r.dumps)-1]
			case codec.VerbEnd:
				open.end = h
				if got, _ := h.Uint("n"); got != uint64(len(open.blocks)) {
					t.Errorf("line %d: end says %d records, %d are there", n, got, len(open.blocks))
				}
				if got, _ := h.Uint("b"); got != open.bytes() {
					t.Errorf("line %d: end says %d bytes, %d are there", n, got, open.bytes())
				}
				open = nil
			case "total":
				r.totals = append(r.totals, h)
			case "load", codec.VerbMap:
				r.loads++
			default:
				t.Errorf("line %d: %s", n, line)
			}
		case bytes.HasPrefix(line, []byte("{{{")):
			err = process.Markup(line)
		default:
			t.Fatalf("line %d is of no known form: %q", n, line)
		}
		if err != nil {
			t.Fatalf("line %d: %s: %v", n, line, err)
		}
	}
	return &r
}

func hex(v uint64) string {
	const digits = "0123456789abcdef"
	s := ""
	for {
		s = string(digits[v&15]) + s
		if v >>= 4; v == 0 {
			return s
		}
	}
}

// replay carries out the events, and returns what is live at their end. An event
// that cannot be, such as an allocation where a block lives, fails the test.
func (r *recorded) replay(t testing.TB) map[uint64]event {
	t.Helper()
	live := map[uint64]event{}
	last := uint64(0)
	for i, e := range r.events {
		if e.time < last {
			t.Fatalf("event %d: time %d after %d", i, e.time, last)
		}
		last = e.time
		if e.thread == 0 {
			t.Fatalf("event %d: no thread", i)
		}
		old, there := live[e.addr]
		switch e.kind {
		case 0:
			if there {
				t.Fatalf("event %d: allocated at %#x, where %d bytes live", i, e.addr, old.size)
			}
			live[e.addr] = e
		case 1:
			if !there || old.size != e.size {
				t.Fatalf("event %d: freed %#x of %d bytes; there: %v, %d", i, e.addr, e.size, there, old.size)
			}
			delete(live, e.addr)
		case 2:
			if _, ok := live[e.old]; !ok {
				t.Fatalf("event %d: moved from %#x, where nothing lives", i, e.old)
			}
			delete(live, e.old)
			if _, ok := live[e.addr]; ok {
				t.Fatalf("event %d: moved to %#x, where something lives", i, e.addr)
			}
			live[e.addr] = e
		default:
			t.Fatalf("event %d of kind %d", i, e.kind)
		}
	}
	return live
}
