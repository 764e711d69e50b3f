package reconcile

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/recording"
)

// A rec is a record of a dump: its text, its call path and its size. One without a size cannot be read, one without a call
// path is a line of text.
type rec struct {
	text, path string
	bytes      uint64
}

// dumped has a reconciler read a dump of one boot. Its header announces a number of records and the sum of their sizes.
func dumped(r *Reconciler[string, int], n, b uint64, list ...rec) Settled[string, int] {
	r.Begin(1, nil, nil)
	for _, x := range list {
		switch it := (&recording.Item{Text: []byte(x.text)}); {
		case x.path == "":
			r.Text([]byte(x.text)) // in pieces
			r.Text([]byte("\n"))
		case x.bytes == 0:
			it.Err = errors.New("damaged")
			r.Unreadable(it)
		default:
			r.Add(it, Record[string, int]{Path: x.path, Bytes: x.bytes})
		}
	}
	return r.End(&recording.Dump{End: header(n, b)}, math.MaxUint64)
}

func header(n, b uint64) *codec.Header {
	return &codec.Header{Verb: codec.VerbEnd, HasNumber: true, Keys: []codec.HeaderKey{{Key: "n", Value: fmt.Sprint(n)}, {Key: "b", Value: fmt.Sprint(b)}}}
}

// text returns a record's text of n characters, which ends as a blob with padding.
func text(n int) string {
	return ("~m#" + strings.Repeat("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 9))[:n-1] + "="
}

// changed returns a text with k characters from i on changed to others that it does not have.
func changed(text string, i, k int) string { return text[:i] + strings.Repeat("#", k) + text[i+k:] }

// A record that cannot be read is restored if at most one in nine of its characters is damaged, and at most 5, in a text of 9 to
// 400.
func TestDamagedCharacters(t *testing.T) {
	for _, c := range []struct {
		length, damaged int
		want            int64
	}{
		{8, 0, 0}, {9, 1, 1}, {17, 1, 1}, {17, 2, 0}, {18, 2, 1}, {44, 4, 1}, {44, 5, 0}, {45, 5, 1}, {45, 6, 0}, {90, 5, 1}, {90, 6, 0}, {400, 1, 1}, {401, 1, 0},
	} {
		var r Reconciler[string, int]
		right := text(c.length)
		dumped(&r, 1, 16, rec{right, "a", 16})
		s := dumped(&r, 1, 16, rec{changed(right, 3, c.damaged), "?", 0})
		if s.Restored != c.want || s.Left != 1-c.want || len(s.Counts) != int(c.want) {
			t.Errorf("%d of %d characters are damaged: %+v, want %d restored", c.damaged, c.length, s, c.want)
		}
		if c.want == 1 && (s.Counts[0].Path != "a" || s.Counts[0].Bytes != 16 || !s.Counts[0].Restored) {
			t.Errorf("%d of %d characters are damaged: %+v", c.damaged, c.length, s.Counts[0])
		}
	}
}

// A line of text counts as a record of at least 14 characters.
func TestDamagedLeadIn(t *testing.T) {
	for length, want := range map[int]int64{13: 0, 14: 1} {
		var r Reconciler[string, int]
		dumped(&r, 1, 16, rec{text(length), "a", 16})
		if s := dumped(&r, 1, 16, rec{changed(text(length), 0, 1), "", 0}); s.Restored != want {
			t.Errorf("%d characters: %+v, want %d restored", length, s, want)
		}
	}
}

// Between two kinds of records, one is right if the other differs by more characters: by 2 more, if 3 are damaged.
func TestTwoKindsAlike(t *testing.T) {
	for _, c := range []struct {
		near, far int
		want      int64
	}{{1, 1, 0}, {1, 2, 1}, {2, 2, 0}, {2, 3, 1}, {3, 3, 0}, {3, 4, 0}, {3, 5, 1}, {4, 5, 0}} {
		var r Reconciler[string, int]
		damaged := text(60)
		near := rec{changed(damaged, 5, c.near), "near", 16}
		dumped(&r, 2, 48, near, rec{changed(damaged, 20, c.far), "far", 32})
		s := dumped(&r, 2, 32, near, rec{damaged, "?", 0})
		if s.Restored != c.want || c.want == 1 && s.Counts[0].Path != "near" {
			t.Errorf("%d and %d characters away: %+v, want %d restored", c.near, c.far, s, c.want)
		}
	}
}

// A record that can be read is taken for a damaged one of a kind that is 5 times as frequent.
func TestFrequentKind(t *testing.T) {
	for count, want := range map[uint64]int64{4: 0, 5: 1} {
		var r Reconciler[string, int]
		right := rec{text(40), "a", 16}
		var list []rec
		for range count {
			list = append(list, right)
		}
		dumped(&r, count, 16*count, list...)
		s := dumped(&r, 2, 32, rec{"~m#000000000000000=", "?", 0}, rec{changed(right.text, 9, 1), "b", 16})
		if s.Restored != want || s.Left != 2-want {
			t.Errorf("%d records of the kind: %+v, want %d restored", count, s, want)
		}
	}
}

// For each record that cannot be read, two that can may be damaged.
func TestChangedPerLost(t *testing.T) {
	var r Reconciler[string, int]
	var list []rec
	for range 20 {
		list = append(list, rec{text(40), "a", 16})
	}
	dumped(&r, 20, 320, list...)
	s := dumped(&r, 4, 64, rec{"~m#000000000000000=", "?", 0}, rec{changed(text(40), 9, 1), "b", 16}, rec{changed(text(40), 15, 1), "c", 16}, rec{changed(text(40), 21, 1), "d", 16})
	if s.Restored != 2 || len(s.Counts) != 3 || s.Left != 1 {
		t.Errorf("%+v, want 2 restored and one as it is", s)
	}
}

// An address is damaged that is 1 MB from the code of the boot, or more behind its end than in front of it.
func TestFarFromCode(t *testing.T) {
	const start, length = 0x1000_0000, 0x2000
	for pc, far := range map[uint64]bool{start - 1<<20 - 1: true, start - 1<<20: false, start: false, start + length + 1<<20 - 1: false, start + length + 1<<20: true} {
		r := Reconciler[string, int]{Eager: true}
		r.Begin(1, nil, []codec.Range{{Start: start, Length: length}})
		waits := r.Add(&recording.Item{Text: []byte(text(40)), Stack: &codec.Stack{PCs: []uint64{start, pc}}}, Record[string, int]{Path: "a", Bytes: 16})
		if (waits != nil) != far {
			t.Errorf("%#x: waits %v, want %v", pc, waits != nil, far)
		}
	}
}

// Of a record without a size that a call path of the boot has, the size is what is missing from the sum. That of the only record
// of a new kind is changed to it.
func TestSizeBySum(t *testing.T) {
	var r Reconciler[string, int]
	a, b := rec{text(40), "a", 16}, rec{changed(text(40), 9, 8), "b", 32}
	dumped(&r, 2, 48, a, b)
	s := dumped(&r, 3, 16+32+80, a, b, rec{changed(text(40), 20, 8), "a", 1000})
	if len(s.Counts) != 1 || s.Counts[0].Bytes != 80 || !s.Counts[0].Restored || s.Restored != 1 || s.Left != 0 {
		t.Errorf("%+v, want one record of 80 bytes", s)
	}
	s = dumped(&r, 3, 16+32+80, a, b, rec{changed(text(40), 20, 8), "c", 1000})
	if len(s.Counts) != 0 || s.Left != 1 {
		t.Errorf("%+v, want a record of an unknown call path left out", s)
	}
	s = dumped(&r, 3, 16+32+80, a, b, rec{changed(text(40), 20, 8), "d", 60})
	if len(s.Counts) != 1 || s.Counts[0].Bytes != 80 || s.Restored != 1 || s.Left != 0 {
		t.Errorf("%+v, want one record of 80 bytes", s)
	}
}

// Without an announcement, a record counts that fits into the heap.
func TestFitsIntoHeap(t *testing.T) {
	for bytes, left := range map[uint64]int64{4096: 0, 4097: 1} {
		var r Reconciler[string, int]
		r.Begin(1, nil, nil)
		r.Add(&recording.Item{Text: []byte(text(40))}, Record[string, int]{Path: "a", Bytes: bytes})
		if s := r.End(&recording.Dump{}, 4096); s.Left != left || len(s.Counts) != int(1-left) {
			t.Errorf("%d bytes in a heap of 4096: %+v, want %d left out", bytes, s, left)
		}
	}
}

// Of two headers that differ, the one counts that announces the number of the records, or else the least number above it.
func TestNearestHeader(t *testing.T) {
	for _, c := range []struct{ end, begin, want uint64 }{{3, 2, 2}, {2, 3, 2}, {1, 4, 4}, {5, 3, 3}, {1, 9, 9}, {1, 0, 1}} {
		var r Reconciler[string, int]
		r.Begin(1, nil, nil)
		r.Add(&recording.Item{Text: []byte(text(40))}, Record[string, int]{Path: "a", Bytes: 8})
		r.Add(&recording.Item{Text: []byte(changed(text(40), 9, 9))}, Record[string, int]{Path: "b", Bytes: 8})
		if s := r.End(&recording.Dump{End: header(c.end, 16), Begin: header(c.begin, 16)}, math.MaxUint64); s.Said.N != c.want {
			t.Errorf("%d and %d are announced of 2 records: %d, want %d", c.end, c.begin, s.Said.N, c.want)
		}
	}
}

// The size of the heaps is the sum of their sizes, or that of their ranges if it is more.
func TestHeapSize(t *testing.T) {
	boot := &codec.Header{Verb: codec.VerbBoot, Keys: []codec.HeaderKey{{Key: "heap", Value: "1000+200,3000+100"}}}
	for _, c := range []struct {
		boot  *codec.Header
		sizes []uint64
		want  uint64
	}{
		{nil, nil, math.MaxUint64}, {nil, []uint64{0}, math.MaxUint64}, {nil, []uint64{100, 200}, 300}, {nil, []uint64{100, math.MaxUint64}, math.MaxUint64},
		{boot, nil, 0x300}, {boot, []uint64{0x2ff}, 0x300}, {boot, []uint64{0x301}, 0x301},
	} {
		if got := HeapSize(c.boot, c.sizes); got != c.want {
			t.Errorf("%v, %v: %d, want %d", c.boot, c.sizes, got, c.want)
		}
	}
}

// A record of base64 that is too short lost a character before its end if its last two bytes have a length for which 1 or 2
// characters are missing or too many.
func TestLostInside(t *testing.T) {
	tail := "AAe" // 18 bits, the last 16 of which are the length, 30: 40 characters
	for digits, want := range map[int]bool{37: false, 38: true, 39: true, 40: false, 41: true, 42: true, 43: false} {
		if got := lostInside([]byte("~m#" + strings.Repeat("B", digits-3) + tail)); got != want {
			t.Errorf("%d characters of 40: %v, want %v", digits, got, want)
		}
	}
	for text, want := range map[string]bool{"~m#BBBBAA=": true, "~m#BBBBAAe": false, "~m#BBBBBAA": false, "~m#BBBBB#AA": true, "~m#BBBB#AA": false} {
		if got := lostInside([]byte(text)); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// A text with other bits that decoders ignore does not take the place of the usual one of its kind.
func TestRareText(t *testing.T) {
	var r Reconciler[string, int]
	usual := rec{text(60), "a", 16}
	dumped(&r, 4, 64, usual, usual, usual, rec{changed(text(60), 30, 8), "a", 16})
	if s := dumped(&r, 1, 16, rec{changed(text(60), 9, 5), "?", 0}); s.Restored != 1 {
		t.Errorf("%+v, want one restored", s)
	}
}

// A damaged record counts as a block of the dump before, unless the dump has that block: then it is another of its kind.
func TestBlockThatIsThere(t *testing.T) {
	block := &recording.Item{Text: []byte(text(60))}
	for _, there := range []bool{false, true} {
		var r Reconciler[string, int]
		for dump := range uint64(2) {
			r.Begin(1, nil, nil)
			n := uint64(1)
			if dump == 0 || there {
				r.Add(block, Record[string, int]{Path: "a", Bytes: 16, Fields: true, Addressed: true})
			}
			if dump == 1 {
				r.Unreadable(&recording.Item{Text: []byte(changed(text(60), 9, 2)), Err: errors.New("damaged")})
				if there {
					n = 2
				}
			}
			s := r.End(&recording.Dump{End: header(n, 16*n)}, math.MaxUint64)
			if dump == 1 && (s.Restored != 1 || s.Counts[0].Addressed == there || s.Counts[0].Path != "a") {
				t.Errorf("the block is there: %v: %+v", there, s)
			}
		}
	}
}

// In a dump that lost records, one of a new kind is left out, as it may be damaged; the second time, it counts.
func TestSecondTime(t *testing.T) {
	var r Reconciler[string, int]
	a, b, lost := rec{text(40), "a", 16}, rec{changed(text(40), 5, 20), "b", 32}, rec{"~m#000000000000000=", "?", 0}
	dumped(&r, 1, 16, a)
	for i, want := range []int64{2, 1} {
		if s := dumped(&r, 3, 16+32+48, a, b, lost); s.Left != want || len(s.Counts) != 2-int(want) {
			t.Errorf("dump %d: %+v, want %d left out", i, s, want)
		}
	}
}

// A damaged record with user fields has about the length of the others of its kind, whatever its prefix.
func TestLengthOfKind(t *testing.T) {
	for length, want := range map[int]int64{36: 0, 37: 1, 43: 1, 44: 0} { // 30 characters in common: 3 may be damaged
		var r Reconciler[string, int]
		r.Begin(1, nil, nil)
		for _, end := range []string{"0000000000", "1111111111", "3333333333"} {
			r.Add(&recording.Item{Text: []byte(text(31)[:30] + end)}, Record[string, int]{Path: "a", Bytes: 16, Fields: true})
		}
		r.End(&recording.Dump{End: header(3, 48)}, math.MaxUint64)
		if s := dumped(&r, 1, 16, rec{text(31)[:30] + strings.Repeat("2", length-30), "?", 0}); s.Restored != want {
			t.Errorf("%d characters: %+v, want %d restored", length, s, want)
		}
	}
}
