package heaplog_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/corpus"
	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/stats"
)

// The serial log of the corpus holds the records that its list says, where it says,
// and no others but the ~b# lines and lone lead-ins.
func TestSerialLog(t *testing.T) {
	log := corpus.File("serial.log")
	type entry struct {
		line, state, says string
		pcs               []string
	}
	listed := map[int64]entry{}
	rows := strings.Split(strings.TrimSpace(string(corpus.File("serial.tsv"))), "\n")[1:]
	whole := 0
	for _, row := range rows {
		var offset, length int64
		f := strings.Split(row, "\t")
		fmt.Sscan(f[0], &offset)
		fmt.Sscan(f[1], &length)
		listed[offset] = entry{string(log[offset : offset+length]), f[2],
			"size=" + f[3] + " pcs=" + strings.ReplaceAll(f[4], " ", ","), strings.Fields(f[4])}
		if f[2] == "whole" {
			whole++
		}
	}
	if whole < 100 || whole == len(rows) {
		t.Fatalf("%d of %d listed records are whole, expected many of both", whole, len(rows))
	}
	found, salvaged := 0, 0
	for r, err := range open(t, bytes.NewReader(log)).Items() {
		if err != nil {
			t.Fatal(err)
		}
		if r.Kind == recording.KindText {
			continue
		}
		if r.Kind == recording.KindDecoded {
			if says(r) != "size=24 pcs=400d1234,80081abc" {
				t.Errorf("%v: %q", r.Place, r.Text)
			}
			continue
		}
		e, ok := listed[r.Offset]
		switch {
		case !ok && string(r.Text) == "~m#" && r.Reason() == "short":
		case !ok:
			t.Errorf("%v: %q is not listed", r.Place, r.Text)
		case e.state == "whole":
			found++
			if says(r) != e.says || string(r.Text) != e.line {
				t.Errorf("%v: got %q %s, want %q %s", r.Place, r.Text, says(r), e.line, e.says)
			}
		default: // cut: what is salvaged is true, but for its last frame where text of the alphabet follows
			found++
			if r.Err == nil {
				t.Errorf("%v: %q is cut, but was accepted", r.Place, r.Text)
			}
			glued := len(r.Text) > len(e.line)
			for n, pc := range pcsOf(r) {
				if got := fmt.Sprintf("%x", pc); got != e.pcs[n] && !glued {
					t.Errorf("%v: frame %d is %s, want %s", r.Place, n, got, e.pcs[n])
				}
				salvaged++
			}
		}
	}
	if found != len(rows) || salvaged == 0 {
		t.Errorf("found %d of %d listed records, %d salvaged frames", found, len(rows), salvaged)
	}
}

// Each line of a capture decodes, and the inferred machine is the one that the
// capturing encoder ran on, which package corpus names.
func TestCaptures(t *testing.T) {
	machines := map[string]codec.Machine{"perl": codec.MachineWrap64, "cc1": codec.MachineWrap64, "git00": codec.MachineWrap64, "i386sql": codec.MachineWrap32}
	for _, name := range corpus.Captures() {
		truth := corpus.Truth(name)
		var infer stats.Inference
		n := 0
		for r, err := range open(t, bytes.NewReader(corpus.Capture(name))).Items() {
			if err != nil {
				t.Fatal(err)
			}
			if r.Kind == recording.KindText {
				continue
			}
			if r.Err != nil || r.Stack.Size != truth[n].Size || len(r.Stack.PCs) != len(truth[n].PCs) {
				t.Fatalf("%v: %v, size %d of %d frames, want %d of %d", r.Place, r.Err, r.Stack.Size,
					len(r.Stack.PCs), truth[n].Size, len(truth[n].PCs))
			}
			for i, pc := range r.Stack.PCs {
				if want := truth[n].PCs[i]; pc&(1<<31-1) != want&(1<<31-1) || want>>32 == 0 && pc != want {
					t.Fatalf("%v: frame %d is %#x, want %#x as far as 31 bits", r.Place, i, pc, want)
				}
			}
			infer.Add(r.Stack, r.Blob)
			n++
		}
		if n != len(truth) || n == 0 {
			t.Errorf("%s: %d records, want %d", name, n, len(truth))
		}
		if m, sure := infer.Machine(); m != machines[name] || !sure {
			t.Errorf("%s: inferred %v, sure %v, want %v; %q", name, m, sure, machines[name], infer.Evidence())
		}
	}
}

// pcsOf returns the addresses of a record as recorded, nil if it could not be read.
func pcsOf(it *heaplog.Item) []uint64 {
	if it.Stack == nil {
		return nil
	}
	return it.Stack.PCs
}
