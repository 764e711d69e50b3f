package alloc

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/lwsbt/lwsbt/heap/core"
)

// TestBeforeBlocks adds variables to each image that hold an address a few bytes in front of each leaked block with space for as many, as of an
// array whose indexes begin with 1. None is leaked then.
func TestBeforeBlocks(t *testing.T) {
	for _, s := range images(t) {
		t.Run(s.name, func(t *testing.T) {
			p := s.run(t)
			for _, bytes := range []uint64{1, 2, 4, 8, 12, 16} {
				var words []byte
				leaked := map[uint64]bool{}
				for _, x := range p.readTruth(t) {
					if !x.leaked || x.size < bytes {
						continue
					}
					leaked[x.addr] = true
					if p.image.word == 64 {
						words = binary.LittleEndian.AppendUint64(words, x.addr-bytes)
					} else {
						words = binary.LittleEndian.AppendUint32(words, uint32(x.addr-bytes))
					}
				}
				m, program := p.open(t)
				name := filepath.Join(t.TempDir(), "words")
				if err := os.WriteFile(name, words, 0o600); err != nil {
					t.Fatal(err)
				}
				const at = 0x1000
				if err := m.AddRAM(at, name); err != nil {
					t.Fatal(err)
				}
				heaps, err := Find(m, program, s.kind)
				if err != nil {
					t.Fatal(err)
				}
				h := Core(m, heaps)
				data := core.Map{Start: at, End: at + uint64(len(words)), Write: true, File: "program"}
				n := 0
				for i, r := range m.FindLeaks(h, core.Roots{Data: append(program.Data, data)}).Reach {
					if a := h.Blocks[i].Addr; leaked[a] {
						if n++; r == core.Leaked {
							t.Errorf("%#x, %d bytes before the block, is known: reach %d", a-bytes, bytes, r)
						}
					}
				}
				if n != len(leaked) || n < 5 {
					t.Errorf("%d leaks, want %d", n, len(leaked))
				}
			}
		})
	}
}
