package recording_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/codec/recording"
)

// empty returns no data for a number of reads.
type empty struct {
	reads int
	io.Reader
}

func (e *empty) Read(p []byte) (int, error) {
	if e.reads > 0 {
		e.reads--
		return 0, nil
	}
	return e.Reader.Read(p)
}

// A source may return no data 99 times in a row; after 100, the Reader gives up, as bufio does.
func TestEmptyReads(t *testing.T) {
	for reads, want := range map[int]error{99: nil, 100: io.ErrNoProgress} {
		var r recording.Reader
		r.Reset(&empty{reads, strings.NewReader("text\n")}, "x")
		if it, err := r.Next(); err != want || err == nil && string(it.Text) != "text\n" {
			t.Errorf("%d empty reads: %v, want %v", reads, err, want)
		}
	}
}

// Lines have limits: of a header and of a decoded record 4,095 characters, of Part III 65,536.
func TestLongestLines(t *testing.T) {
	for _, c := range []struct {
		head, fill string
		most       int
	}{
		{"~h#boot prog=", "x", 4095}, {"~b#size: 1, 0x", "0", 4095}, {callpath.LeadIn, "A", 65536}, {callpath.LeadInEvents, "A", 65536},
	} {
		for _, n := range []int{c.most, c.most + 1} {
			text := c.head + strings.Repeat(c.fill, n-len(c.head)) + "\n"
			for it := range recording.Items([]byte(text)) {
				if it.Kind != recording.KindText || strings.HasPrefix(string(it.Text), "~") {
					if long := errors.Is(it.Err, recording.ErrTooLong); long != (n > c.most) {
						t.Errorf("%s of %d characters: %v", c.head, n, it.Err)
					}
					break
				}
			}
		}
	}
}

// Lines of events are numbered modulo 2^18, and allocations are lost where a block is skipped, except before the first line.
func TestLostEvents(t *testing.T) {
	var log recording.Log
	log.Add(&recording.Item{Kind: recording.KindHeader, Header: &codec.Header{Verb: codec.VerbBoot}})
	for _, c := range []struct {
		lines, next uint64
		lost        int64
		allocs      uint64
	}{{100000, 5, 100000, 0}, {100001, 9, 0, 4}, {100003, 9, 1, 0}, {200000, 9, 99996, 0}, {1<<18 - 1, 9, 62142, 0}, {0, 9, 0, 0}, {2, 9, 1, 0}} {
		w := callpath.EventsWriter{Lines: c.lines, Next: c.next}
		text, err := w.Append(nil, callpath.Event{Kind: callpath.Lost, Count: 1})
		if err != nil {
			t.Fatal(err)
		}
		for it := range recording.Items(w.Flush(text)) {
			if it.Kind != recording.KindPathEvents {
				continue
			}
			if p := log.Add(it); p.Lost != c.lost || p.LostAllocs != c.allocs || p.LostEvents != 1 {
				t.Errorf("line %d, block %d: %d lines, %d allocations, %d events lost; want %d, %d, 1", c.lines, c.next, p.Lost, p.LostAllocs, p.LostEvents, c.lost, c.allocs)
			}
		}
	}
}

// Addresses of a ~b# line have digits of both cases, and the first character that is none ends them. (BT-TEXT-3)
func TestHexadecimalDigits(t *testing.T) {
	for _, tt := range []struct {
		text string
		want uint64
	}{{"0x09afAF", 0x09afaf}, {"0xfF90", 0xff90}, {"0x8000/", 0x8000}, {"0x8000:", 0x8000}, {"0x8000@", 0x8000}, {"0x8000G", 0x8000}, {"0x8000`", 0x8000}, {"0x8000g", 0x8000}} {
		r := recording.Reader{}
		r.Reset(strings.NewReader("~b#size: 1, "+tt.text+"\n"), "x")
		it, err := r.Next()
		if err != nil || it.Err != nil || len(it.Stack.PCs) != 1 || it.Stack.PCs[0] != tt.want {
			t.Errorf("%s: %v %v", tt.text, it, err)
		}
	}
}

// Two characters are no lead-in.
func TestShortestLeadIn(t *testing.T) {
	for text, want := range map[string]bool{"~": false, "~m": false, "~m#": true} {
		if it := (recording.Item{Kind: recording.KindUnreadable, Text: []byte(text)}); it.Found() != want {
			t.Errorf("%s: %v, want %v", text, !want, want)
		}
	}
}

func TestUnknownKind(t *testing.T) {
	if s := (recording.KindIdle + 1).String(); s != "Kind(9)" {
		t.Error(s)
	}
}

// A bit of the last character that no byte takes is 0, with one byte in the last group and with two. (BT-B64-3)
func TestUnusedBits(t *testing.T) {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	seen := map[int]bool{}
	for depth := range 12 {
		s := codec.Stack{Size: 1 << depth}
		for i := range depth {
			s.PCs = append(s.PCs, uint64(0x8000+i))
		}
		blob, err := codec.Encoder{}.AppendBlob(nil, &s, nil)
		if err != nil {
			t.Fatal(err)
		}
		pads := (3 - len(blob)%3) % 3
		seen[pads] = true
		for bit := range 2 * pads {
			line := codec.AppendLine(nil, blob)
			last := &line[len(line)-1-pads]
			*last = digits[strings.IndexByte(digits, *last)|1<<bit]
			r := recording.Reader{}
			r.Reset(strings.NewReader(string(line)+"\n"), "x")
			it, err := r.Next()
			if err != nil || it.Err == nil {
				t.Errorf("%s: %v, %v; want it rejected", line, it, err)
				continue
			}
			why := it.Err.Error()
			r.Reset(strings.NewReader("~e#"+string(line[len(codec.LeadIn):])+"\n"), "x")
			if it, err := r.Next(); err != nil || it.Err == nil || it.Err.Error() != why {
				t.Errorf("~e# in place of ~m# in %s: %v, %v; want %s", line, it.Err, err, why)
			}
		}
	}
	if len(seen) != 3 {
		t.Errorf("lengths of groups: %v", seen)
	}
}
