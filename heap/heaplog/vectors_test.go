package heaplog_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/conformance"
	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/profile"
)

// vectorsOf returns the vectors of an operation.
func vectorsOf(t *testing.T, op conformance.Op, least int) (list []*conformance.Vector) {
	t.Helper()
	set, err := conformance.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range set.Vectors {
		if v.Has(op) {
			list = append(list, v)
		}
	}
	if len(list) < least {
		t.Fatalf("%d vectors of %s, expected at least %d", len(list), op, least)
	}
	return list
}

// openVector opens the log of a vector as it is, whatever its first bytes are: behind a line end,
// so offsets are higher by 1.
func openVector(t *testing.T, v *conformance.Vector) *heaplog.Reader {
	return open(t, strings.NewReader("\n"+*v.Text), heaplog.Unnamed())
}

// The vectors of log, by Items.
func TestLogVectors(t *testing.T) {
	for _, v := range vectorsOf(t, "log", 50) {
		var got []string
		for it, err := range openVector(t, v).Items() {
			if err != nil || !it.Found() || strings.IndexByte("mbe", it.Text[1]) < 0 {
				continue // a log without records is an answer, too
			}
			text := fmt.Sprintf("%c@%d+%d;", it.Text[1], it.Offset-1, len(it.Text))
			if it.Err != nil && (it.Cut == nil || it.Kind != recording.KindDecoded) {
				got = append(got, text+"reject")
				continue
			}
			value := conformance.Value{Size: it.Stack.Size, PCs: it.Stack.PCs}
			for tag := codec.TagAddress; it.User != nil && tag <= codec.TagOldAddress; tag++ {
				if x, ok := it.User.Get(tag); ok {
					value.User = append(value.User, conformance.UserField{Tag: uint8(tag), Value: x})
				}
			}
			got = append(got, text+strings.ReplaceAll(value.String(), " ", ";"))
		}
		var want []string
		for _, word := range strings.Fields(v.Want.Words) {
			if f := strings.Split(word, ";"); len(f) > 3 { // without boot and dump
				want = append(want, strings.Join(slices.Delete(f, 1, 3), ";"))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", v.ID, got, want)
		}
	}
}

// The vectors of dumps, by Dumps. Values outside of dumps may be dumps of their own (BT-REC-3).
func TestDumpsVectors(t *testing.T) {
	for _, v := range vectorsOf(t, "dumps", 80) {
		lines := strings.Split("\n"+*v.Text, "\n")
		unread := map[int]uint64{} // records that could not be read, by dump
		for it, err := range openVector(t, v).Items() {
			if err == nil && it.Kind == recording.KindUnreadable && it.Counts() {
				unread[it.Dump]++
			}
		}
		var got []vectorDump
		for d, err := range openVector(t, v).Dumps() {
			if err == nil && strings.Contains(lines[d.Line-1], "~h#begin") {
				got = append(got, dumpOf(d, codeAt(lines[:d.Line]), unread[d.Index+1]))
			}
		}
		want := wantedDumps(t, v)
		if len(got) != len(want) {
			t.Errorf("%s: %d dumps, want %d", v.ID, len(got), len(want))
			continue
		}
		for i := range want {
			if text := want[i].differs(&got[i]); text != "" {
				t.Errorf("%s, dump %d: %s", v.ID, i+1, text)
			}
		}
	}
}

// vectorDump is a dump of a vector, as far as profile.Dump has it.
type vectorDump struct {
	head  string // number, what is missing, and what is special about it
	paths map[string]profile.Allocation
}

// differs returns how a dump differs, "" if it does not. Records are paths only of got,
// those without frames the path "none".
func (want *vectorDump) differs(got *vectorDump) string {
	if got.head != want.head {
		return fmt.Sprintf("got %s, want %s", got.head, want.head)
	}
	near := func(a, b uint64) bool { return a == b || max(a, b)-min(a, b) == 1 } // estimates are rounded so that their sum is
	for path, w := range want.paths {
		g, ok := got.paths[path]
		if !ok || g.Ever != w.Ever || g.Peak != w.Peak || !near(g.Count, w.Count) || !near(g.Bytes, w.Bytes) {
			return fmt.Sprintf("%s: got %v %+v %+v %d, want %+v %+v %d", path, slices.Collect(maps.Keys(got.paths)), g.Value, g.Ever, g.Peak, w.Value, w.Ever, w.Peak)
		}
	}
	for path, g := range got.paths {
		if _, ok := want.paths[path]; !ok && g.Value != (profile.Value{}) && path != "none" && !strings.HasPrefix(strings.TrimPrefix(path, "cut/"), "@") {
			return fmt.Sprintf("%s %+v is not expected; expected %v", path, g.Value, slices.Collect(maps.Keys(want.paths)))
		}
	}
	return ""
}

// wantedDumps returns the dumps that a vector expects.
func wantedDumps(t *testing.T, v *conformance.Vector) (list []vectorDump) {
	t.Helper()
	for _, word := range strings.Fields(v.Want.Words) {
		if word == "-" {
			break
		}
		f := strings.Split(word, ";")
		if strings.HasPrefix(word, "dump=") {
			lines, rest, _ := strings.Cut(strings.TrimPrefix(f[2], "missing="), ",")
			if n, err := strconv.ParseUint(lines, 10, 64); err == nil && n > math.MaxInt64 {
				f[2] = fmt.Sprintf("missing=%d,%s", int64(math.MaxInt64), rest) // Loss.Lines has 63 bits
			}
			list = append(list, vectorDump{strings.Join(slices.Delete(f, 1, 2), ";"), map[string]profile.Allocation{}})
			continue
		}
		base, path, _ := strings.Cut(f[0], ":")
		switch name, frames, _ := strings.Cut(path, "/"); base {
		case "0":
		case "1":
			path = strings.TrimSuffix("cut/"+path, "/")
		default: // the name is not known
			path = strings.TrimSuffix("unknown/"+frames, "/")
			if name == "" {
				t.Fatalf("%s: %q", v.ID, word)
			}
		}
		path = cmp.Or(path, "none")
		var a profile.Allocation
		for _, field := range f[1:] {
			key, text, _ := strings.Cut(field, "=")
			var n [2]uint64
			for i, s := range strings.Split(text, ",") {
				var err error
				if n[i], err = strconv.ParseUint(s, 10, 64); err != nil {
					x, err := strconv.ParseFloat(s, 64)
					if err != nil || x < math.MaxUint64 {
						t.Fatalf("%s: %q", v.ID, word)
					}
					n[i] = math.MaxUint64
				}
			}
			switch key {
			case "live":
				a.Count = n[0]
			case "bytes":
				a.Bytes = n[0]
			case "ever":
				a.Ever = profile.Value{Count: n[0], Bytes: n[1]}
			case "peak":
				a.Peak = n[0]
			case "est":
				a.Count, a.Bytes = n[0], n[1]
			}
		}
		paths := list[len(list)-1].paths
		paths[path] = add(paths[path], a)
	}
	return list
}

// add adds up allocations.
func add(a, b profile.Allocation) profile.Allocation {
	a.Value.Add(b.Value)
	a.Ever.Add(b.Ever)
	a.Peak += b.Peak
	return a
}

// codeAt returns the code ranges of the boot that lines end in.
func codeAt(lines []string) (r callpath.Ranges) {
	for _, line := range lines {
		var h codec.Header
		_, text, ok := strings.Cut(line, codec.LeadInHeader+codec.VerbBoot)
		if !ok || codec.ParseHeader(&h, []byte(codec.LeadInHeader+codec.VerbBoot+text)) != nil {
			continue
		}
		shift, _ := h.Uint("shift")
		r = callpath.Ranges{Shift: uint8(shift)}
		code, _ := h.Get("code")
		list, _ := codec.ParseRanges(code)
		for _, x := range list {
			r.Add(x, "")
		}
	}
	return r
}

// dumpOf returns what a profile.Dump has in the words of a vector. unread is the number of records in
// it that could not be read.
func dumpOf(d *profile.Dump, code callpath.Ranges, unread uint64) vectorDump {
	blocks := recording.Lack{Announced: d.Announced.Records, Read: d.Written.Count + unread, Known: d.Announced.HasRecords}
	bytes := recording.Lack{Announced: d.Announced.Bytes, Read: d.Written.Bytes, Known: d.Announced.HasBytes}
	out := vectorDump{fmt.Sprintf("dump=%d;missing=%d,%v,%v", d.Number, d.Loss.Lines, blocks, bytes), map[string]profile.Allocation{}}
	if d.Cut {
		out.head += ";open"
	}
	if d.Loss.NoBase {
		out.head += ";nobase"
	}
	for a := range d.Allocations() {
		path := pathText(a.Path, &code)
		out.paths[path] = add(out.paths[path], a)
	}
	return out
}

// pathText returns a call path as frames, outermost first, as a vector has them.
func pathText(p profile.Path, code *callpath.Ranges) string {
	var frames []string
	for _, addr := range slices.Backward(p.Append(nil)) {
		offset, unknown := heaplog.CodeOffset(addr)
		names := addr.Frames()
		switch {
		case unknown:
			frames = append(frames, fmt.Sprintf("%x", offset))
		case addr.PC == 0 && len(names) == 1 && strings.HasPrefix(names[0].Name, "(outer frames"):
			frames = append(frames, "unknown")
		case addr.PC == 0 && len(names) == 1 && strings.HasPrefix(names[0].Name, "("):
			frames = append(frames, "cut")
		default:
			if f := code.Frame(addr.PC); f.Escaped {
				frames = append(frames, fmt.Sprintf("@%x", f.Value))
			} else {
				frames = append(frames, fmt.Sprintf("%x", f.Value))
			}
		}
	}
	return cmp.Or(strings.Join(frames, "/"), "none")
}
