package fuzz

import (
	"bytes"
	"io"
	"slices"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/dump"
	"github.com/lwsbt/lwsbt/gen/gentest"
)

// found is a record, kept.
type found struct {
	offset   int64
	line     int64
	kind     dump.Kind
	text     string
	cut      bool
	rejected bool
	stack    codec.Stack
}

func scan(t interface{ Fatalf(string, ...any) }, in io.Reader, bare bool) (records []found, log []byte, tally *dump.Tally) {
	var text bytes.Buffer
	s := dump.NewScanner(in, "log")
	s.Text, s.Bare = &text, bare
	for s.Next() {
		r := s.Record()
		log = append(log, text.Bytes()...)
		text.Reset()
		if r.Offset != int64(len(log)) {
			t.Fatalf("a record at offset %d, %d bytes came before it", r.Offset, len(log))
		}
		log = append(log, r.Text...)
		stack := r.Stack
		stack.PCs = slices.Clone(stack.PCs)
		records = append(records, found{r.Offset, r.Line, r.Kind, string(r.Text), r.Cut, r.Err != nil, stack})
	}
	if err := s.Err(); err != nil {
		t.Fatalf("%v", err)
	}
	return records, append(log, text.Bytes()...), s.Tally()
}

// Any log: read to its end, every byte of it returned once and in order, the
// same whether it comes at once or byte by byte; what is read without an error
// is what its text says.
func FuzzDump(f *testing.F) {
	seed(f, logSeeds())
	f.Fuzz(func(t *testing.T, log []byte) {
		for _, bare := range []bool{false, true} {
			records, again, tally := scan(t, bytes.NewReader(log), bare)
			if !bytes.Equal(again, log) {
				t.Fatalf("%q came out as %q", log, again)
			}
			slow, _, _ := scan(t, iotest.OneByteReader(bytes.NewReader(log)), bare)
			if !slices.EqualFunc(records, slow, sameFound) {
				t.Fatalf("%q: %+v at once, %+v byte by byte", log, records, slow)
			}
			if n := tally.Read + tally.Cut + tally.Unreadable; n != int64(len(records)) || tally.Bytes != int64(len(log)) {
				t.Fatalf("%q: %d records tallied of %d, %d bytes", log, n, len(records), tally.Bytes)
			}
			for _, r := range records {
				checkRecord(t, log, r)
			}
		}
	})
}

func sameFound(a, b found) bool {
	return a.offset == b.offset && a.line == b.line && a.kind == b.kind && a.text == b.text &&
		a.cut == b.cut && a.rejected == b.rejected && equal(&a.stack, &b.stack)
}

func checkRecord(t *testing.T, log []byte, r found) {
	if want := int64(bytes.Count(log[:r.offset], []byte("\n"))) + 1; r.line != want {
		t.Fatalf("%q: the record at %d is in line %d, want %d", log, r.offset, r.line, want)
	}
	if r.rejected {
		if !r.cut && len(r.stack.PCs) > 0 {
			t.Fatalf("%q is rejected, and holds %x", r.text, r.stack.PCs)
		}
		return
	}
	var s codec.Stack
	var err error
	if r.kind == dump.Decoded {
		err = codec.ParseDecoded(&s, []byte(r.text))
	} else {
		var blob []byte
		if blob, err = codec.ParseLineLenient(nil, []byte(r.text)); err == nil {
			err = codec.Decode(&s, blob)
		}
	}
	if err != nil || !equal(&s, &r.stack) {
		t.Fatalf("%q was read as %x, its text says %x (%v)", r.text, r.stack.PCs, s.PCs, err)
	}
}

// Every whole record of a log is found, in order, and no other is read from it.
func TestLogsAreReadWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := gentest.AnyLog().Draw(t, "log")
		records, _, _ := scan(t, bytes.NewReader(l.Text), false)
		whole := slices.DeleteFunc(records, func(r found) bool { return r.rejected })
		if len(whole) != len(l.Blobs) {
			t.Fatalf("%d records read, %d are in %q", len(whole), len(l.Blobs), l.Text)
		}
		for i, r := range whole {
			if want := string(codec.AppendLine(nil, l.Blobs[i])); r.text != want {
				t.Fatalf("record %d is %s, want %s", i, r.text, want)
			}
		}
	})
}
