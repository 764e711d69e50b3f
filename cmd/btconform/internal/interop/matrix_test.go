package interop

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/conformance"
)

func matrixEncoders(t *testing.T) []MatrixEncoder {
	t.Helper()
	set, err := conformance.Load([]string{"../../../../ref-c/vectors"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	encoders, err := MatrixEncoders(set)
	if err != nil {
		t.Fatal(err)
	}
	return encoders
}

func recorded(t *testing.T) map[string]*MatrixDecoder {
	t.Helper()
	decoders, err := RecordedMatrix()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*MatrixDecoder{}
	for _, d := range decoders {
		byName[d.Name] = d
	}
	if len(byName) < 12 {
		t.Fatalf("%d recorded decoders, want at least 12", len(byName))
	}
	return byName
}

// Every recording was made with the current blobs.
func TestMatrixIsFresh(t *testing.T) {
	encoders := matrixEncoders(t)
	for name, d := range recorded(t) {
		for i := range encoders {
			if cell, stale := d.Cell(&encoders[i]); cell == nil || stale {
				t.Errorf("%s: no recording of %s, or one of other blobs: btconform matrix --record %s", name, encoders[i].Name, name)
			} else if n := cell.Exact + cell.Low + cell.Fails(); n != len(encoders[i].Blobs) {
				t.Errorf("%s: %d answers to %d blobs of %s", name, n, len(encoders[i].Blobs), encoders[i].Name)
			}
		}
	}
}

// The codec reads the blobs of every encoder. lws does not read its own blobs if another
// compiler built the encoder.
func TestMatrixSaysWhoReadsWhom(t *testing.T) {
	encoders := matrixEncoders(t)
	ours, err := ReadMatrix(t.Context(), "ours", encoders, conformance.Codec)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range ours.Cells {
		if c.Fails() > 0 {
			t.Errorf("ours: %d of %s fail: %v", c.Fails(), c.Encoder, c.Failed)
		}
	}
	byName := recorded(t)
	for i := range encoders {
		if encoders[i].Name != "x86_64-clang14-O2" {
			continue
		}
		gcc, _ := byName["x86_64-gcc12-O2"].Cell(&encoders[i])
		clang, _ := byName["x86_64-clang14-O2"].Cell(&encoders[i])
		if gcc.Fails() != len(encoders[i].Blobs) || clang.Fails() >= gcc.Fails() {
			t.Errorf("of %d blobs of clang's, gcc's lws fails on %d, clang's on %d", len(encoders[i].Blobs), gcc.Fails(), clang.Fails())
		}
		return
	}
	t.Error("clang's blobs are missing")
}

func TestMatrixTextRoundTrip(t *testing.T) {
	for name, d := range recorded(t) {
		text := AppendMatrix(nil, d)
		again, err := parseMatrix(name, text)
		if err != nil || !bytes.Equal(AppendMatrix(nil, again), text) {
			t.Errorf("%s does not round-trip (%v)", name, err)
		}
	}
}

func TestParseMatrixNamesThePlace(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "m.tsv:1: expected decoder",
		"decoder\tx":               "m.tsv:1: expected decoder",
		"decoder\tx\ty\nencoder\n": "m.tsv:2: expected",
		"decoder\tx\ty\n" + matrixHead + "\na\tb\n":                        "m.tsv:3: 2 columns, expected 8",
		"decoder\tx\ty\n" + matrixHead + "\na\tb\t1\t2\tthree\t4\t5\tid\n": `m.tsv:3: column 5 is "three"`,
	} {
		if _, err := parseMatrix("m.tsv", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
