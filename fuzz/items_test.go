package fuzz

import (
	"bytes"
	"io"
	"slices"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/gen/gentest"
)

// found is a copy of a record.
type found struct {
	offset   int64
	line     int64
	kind     recording.Kind
	text     string
	cut      bool
	rejected bool
	user     bool // its blob has user fields
	stack    codec.Stack
}

func scan(t interface{ Fatalf(string, ...any) }, in io.Reader) (records []found, log []byte) {
	var r recording.Reader
	r.Reset(in, "log")
	for {
		it, err := r.Next()
		if err == io.EOF {
			return records, log
		}
		if err != nil {
			t.Fatalf("%v", err)
		}
		if it.Offset != int64(len(log)) {
			t.Fatalf("an item at offset %d, after %d bytes", it.Offset, len(log))
		}
		log = append(log, it.Text...)
		if it.Kind == recording.KindText {
			continue
		}
		f := found{it.Offset, it.Line, it.Kind, string(it.Text), it.Cut != nil, it.Err != nil, it.User != nil, codec.Stack{}}
		if it.Stack != nil {
			f.stack = *it.Stack
			f.stack.PCs = slices.Clone(f.stack.PCs)
		}
		records = append(records, f)
	}
}

// FuzzItems reads any log to its end: every byte is returned once and in order, the items are
// the same whether the log is read at once or byte by byte, and a record without an error has
// the values of its text.
func FuzzItems(f *testing.F) {
	seed(f, logSeeds())
	f.Fuzz(func(t *testing.T, log []byte) {
		records, again := scan(t, bytes.NewReader(log))
		if !bytes.Equal(again, log) {
			t.Fatalf("%q came out as %q", log, again)
		}
		slow, _ := scan(t, iotest.OneByteReader(bytes.NewReader(log)))
		if !slices.EqualFunc(records, slow, sameFound) {
			t.Fatalf("%q: %+v at once, %+v byte by byte", log, records, slow)
		}
		for _, r := range records {
			checkRecord(t, log, r)
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
			t.Fatalf("%q is rejected, but has the frames %x", r.text, r.stack.PCs)
		}
		return
	}
	var s codec.Stack
	var u codec.User
	var err error
	text := []byte(r.text)
	switch r.kind {
	case recording.KindHeader:
		var h codec.Header
		err = codec.ParseHeader(&h, text)
	case recording.KindDecoded:
		err = codec.ParseDecoded(&s, text)
	case recording.KindEvent:
		text = bytes.TrimPrefix(text, []byte("~e#"))
		fallthrough
	default:
		var blob []byte
		if blob, err = (codec.Decoder{Lenient: true}).ParseLine(nil, text); err != nil {
			break
		}
		switch {
		case r.kind == recording.KindEvent:
			err = codec.Decoder{}.DecodeEvent(&s, &u, blob)
		case r.user:
			err = codec.Decoder{}.Decode(&s, &u, blob)
		default:
			err = codec.Decoder{}.Decode(&s, nil, blob)
		}
	}
	if err != nil || !equal(&s, &r.stack) {
		t.Fatalf("%q was read as %x, its text decodes to %x (%v)", r.text, r.stack.PCs, s.PCs, err)
	}
}

// Every complete record of a log is found, in order, and nothing else.
func TestLogsAreReadWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := gentest.AnyLog().Draw(t, "log")
		records, _ := scan(t, bytes.NewReader(l.Text))
		whole := slices.DeleteFunc(records, func(r found) bool { return r.rejected || r.kind != recording.KindBlob })
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
