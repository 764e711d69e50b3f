package render

import (
	"bytes"
	"testing"

	"github.com/lwsbt/lwsbt/cmd/btconform/internal/interop"
)

// Decoders with equal results share a column. A pair without a recording is a gap.
func TestMatrixTable(t *testing.T) {
	encoders := []interop.MatrixEncoder{{Name: "e", Blobs: make([]interop.MatrixBlob, 3)}, {Name: "f"}}
	cell := func(e int, c interop.MatrixCell) interop.MatrixCell {
		c.Encoder, c.Hash = encoders[e].Name, encoders[e].Hash()
		return c
	}
	decoders := []*interop.MatrixDecoder{
		{Name: "a", Cells: []interop.MatrixCell{cell(0, interop.MatrixCell{Exact: 3}), cell(1, interop.MatrixCell{})}},
		{Name: "b", Cells: []interop.MatrixCell{cell(0, interop.MatrixCell{Exact: 1, Wrong: 1, Crash: 1}), {Encoder: "f", Hash: "0"}}},
		{Name: "c", Cells: []interop.MatrixCell{cell(0, interop.MatrixCell{Exact: 2, Low: 1})}},
		{Name: "d", Cells: []interop.MatrixCell{cell(0, interop.MatrixCell{Exact: 3}), cell(1, interop.MatrixCell{})}},
	}
	var out bytes.Buffer
	gaps, err := Matrix(&out, encoders, decoders, false)
	if err != nil || gaps != 2 {
		t.Errorf("%d gaps (%v), want 2", gaps, err)
	}
	const want = `
encoder  blobs   A    B  C
----------------------------
e            3  ok    2  ~
f            0  ok  old  ?

ok: all blobs read as encoded; ~: of values over 31 bits, only the low 31 bits;
a number: how many blobs were not read. Equal decoders share a column:
  A  a, d
  B  b
  C  c
`
	if got := "\n" + out.String(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
