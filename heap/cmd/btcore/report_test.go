package main

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/heap/core"
)

// Leaks of an allocator are printed by size, or by the call stacks that it stores. Bytes behind a block that were
// overwritten are not its metadata.
func TestReportOfArenas(t *testing.T) {
	for _, c := range []struct {
		stack []uint64
		want  []string
	}{
		{nil, []string{"2 blocks leaked, 40 bytes, by 2 sizes.", "the metadata of 2 blocks"}},
		{[]uint64{0x8001, 0x9001}, []string{"2 blocks leaked, 40 bytes, by 1 call stack.", "0x00008001", "0x00009001"}},
	} {
		in := &input{}
		in.Word, in.Order = 32, binary.LittleEndian
		h := in.NewHeap([]core.Arena{{Name: "arena", Blocks: slices.Values([]core.ArenaBlock{
			{Addr: 0x1000, Size: 16, Stack: c.stack}, {Addr: 0x1020, Size: 24, Stack: c.stack}}),
			Damage: []core.ArenaDamage{{Addr: 0x1020, At: 0x1038, Part: core.DamagedEnd, What: "a canary", Suspect: 1}}}})
		names, err := in.symbols()
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		r := &report{w: &out, in: in, h: h, names: names}
		r.leaks(in.FindLeaks(h, core.Roots{}))
		r.damage()
		for _, want := range append(c.want, "0x1038, behind a block, was overwritten:\n  - a canary\n", "past\n  its end: 0x1020, 24 bytes") {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%d addresses: no %q in\n%s", len(c.stack), want, out.String())
			}
		}
	}
}
