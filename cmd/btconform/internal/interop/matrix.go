// Package interop implements the encoder × decoder matrix: how the decoders of lws builds and
// of this module read the blobs of each encoder.
package interop

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"hash/fnv"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/gen"
)

// MatrixEncoder is a row of the matrix: the blobs that one encoder made from many stacks.
type MatrixEncoder struct {
	Name  string
	Word  int
	Blobs []MatrixBlob
}

// MatrixBlob is a blob of an encoder, with the stack that it encodes.
type MatrixBlob struct {
	ID   string
	In   conformance.Value // the stack that was encoded
	Blob []byte
}

// Hash returns a hash of the blobs. It identifies recordings that were made with other blobs.
func (e *MatrixEncoder) Hash() string {
	h := fnv.New64a()
	for _, b := range e.Blobs {
		fmt.Fprintf(h, "%s %x\n", b.In, b.Blob)
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// ownEncoders lists the encoders of this module that are rows of the matrix, too. Most are
// exact machines, as new encoders SHOULD be (BT-MACH-4).
var ownEncoders = []struct {
	name    string
	machine codec.Machine
	search  codec.Search
}{
	{"ours-exact64-lws", codec.MachineExact64, codec.SearchLws},
	{"ours-exact64-best", codec.MachineExact64, codec.SearchBest},
	{"ours-wrap64-best", codec.MachineWrap64, codec.SearchBest},
	{"ours-exact32-lws", codec.MachineExact32, codec.SearchLws},
	{"ours-exact32-best", codec.MachineExact32, codec.SearchBest},
}

// MatrixEncoders returns the encoders whose blobs are recorded in set, one per file, and the
// encoders of this module. All encode the stacks of [gen.VectorStacks]. Captures of live
// stacks are left out, because they differ between builds.
func MatrixEncoders(set *conformance.Set) ([]MatrixEncoder, error) {
	var all []MatrixEncoder
	for _, v := range set.Vectors {
		if v.In == nil || v.Blob == nil || v.Head.Platform == "" {
			continue
		}
		id := strings.TrimPrefix(v.ID, v.Head.Platform+"/")
		if strings.HasPrefix(id, "capture/") {
			continue
		}
		name := strings.TrimSuffix(path.Base(v.File), ".btv")
		if len(all) == 0 || all[len(all)-1].Name != name {
			all = append(all, MatrixEncoder{Name: name, Word: v.Machine.Word()})
		}
		e := &all[len(all)-1]
		e.Blobs = append(e.Blobs, MatrixBlob{id, *v.In, v.Blob})
	}
	for _, own := range ownEncoders {
		e := MatrixEncoder{Name: own.name, Word: own.machine.Word()}
		for _, s := range gen.VectorStacks(e.Word, 1) {
			blob, err := codec.Encoder{Machine: own.machine, Search: own.search}.AppendBlob(nil, &s.Stack, nil)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", own.name, s.ID, err)
			}
			e.Blobs = append(e.Blobs, MatrixBlob{s.ID, conformance.Value{Size: s.Stack.Size, PCs: s.Stack.PCs}, blob})
		}
		all = append(all, e)
	}
	return all, nil
}

// MatrixCell holds the results of one decoder for the blobs of one encoder.
type MatrixCell struct {
	Encoder string
	Hash    string // of the blobs
	Exact   int    // blobs with all values right
	Low     int    // blobs with the low 31 bits of all values right, but not all values
	Wrong   int    // blobs with other values or another depth
	Reject  int
	Crash   int // crash or hang
	Failed  []string
}

// maxFailed is the number of IDs of failed blobs that a cell stores.
const maxFailed = 3

// Fails returns the number of blobs that the decoder could not read.
func (c *MatrixCell) Fails() int { return c.Wrong + c.Reject + c.Crash }

// add counts the decoder's answer for a blob.
func (c *MatrixCell) add(b *MatrixBlob, a conformance.Answer) {
	switch {
	case a.Outcome == conformance.OK && a.Value.Equal(b.In):
		c.Exact++
		return
	case a.Outcome == conformance.OK && lowEqual(a.Value, b.In):
		c.Low++
		return
	case a.Outcome == conformance.OK:
		c.Wrong++
	case a.Outcome == conformance.Reject:
		c.Reject++
	default:
		c.Crash++
	}
	if len(c.Failed) < maxFailed {
		c.Failed = append(c.Failed, b.ID)
	}
}

// lowEqual reports whether the low 31 bits of all values, which every machine keeps, are
// equal. (BT-LOSS-1)
func lowEqual(a, b conformance.Value) bool {
	low := func(x, y uint64) bool { return (x^y)&(1<<31-1) == 0 }
	return low(a.Size, b.Size) && slices.EqualFunc(a.PCs, b.PCs, low)
}

// MatrixDecoder is a column of the matrix: a decoder and its results for each encoder.
type MatrixDecoder struct {
	Name  string
	About string // name, version and machines that the implementation gave
	Cells []MatrixCell
}

// Cell returns the results of the decoder for an encoder, or nil if there is no recording.
// stale reports whether the recording was made with other blobs.
func (d *MatrixDecoder) Cell(e *MatrixEncoder) (c *MatrixCell, stale bool) {
	for i := range d.Cells {
		if d.Cells[i].Encoder == e.Name {
			return &d.Cells[i], d.Cells[i].Hash != e.Hash()
		}
	}
	return nil, false
}

// ReadMatrix asks an implementation to decode the blobs of all encoders, and returns its
// results.
func ReadMatrix(ctx context.Context, name string, encoders []MatrixEncoder, start conformance.Starter) (*MatrixDecoder, error) {
	t, err := start(ctx)
	if err != nil {
		return nil, err
	}
	hello := t.Hello()
	d := &MatrixDecoder{Name: name, About: hello.Name + " " + hello.Version}
	word := 64
	if len(hello.Machines) == 1 {
		word = hello.Machines[0].Word()
		d.About += " " + hello.Machines[0].String()
	}
	for i := range encoders {
		e := &encoders[i]
		requests := make([]conformance.Request, len(e.Blobs))
		for n := range e.Blobs {
			requests[n] = conformance.Request{Op: conformance.OpDecode, Data: e.Blobs[n].Blob, Word: word}
		}
		cell := MatrixCell{Encoder: e.Name, Hash: e.Hash()}
		for from := 0; from < len(requests); from += conformance.Batch {
			answers, err := conformance.AskAll(t, requests[from:min(from+conformance.Batch, len(requests))])
			if err != nil {
				return nil, err
			}
			for n, a := range answers {
				cell.add(&e.Blobs[from+n], a)
			}
		}
		d.Cells = append(d.Cells, cell)
	}
	return d, t.Close()
}

//go:embed recorded/*.tsv
var recordedMatrix embed.FS

// RecordedMatrix returns the recorded decoders.
func RecordedMatrix() ([]*MatrixDecoder, error) {
	files, err := recordedMatrix.ReadDir("recorded")
	if err != nil {
		return nil, err
	}
	var all []*MatrixDecoder
	for _, f := range files {
		text, err := recordedMatrix.ReadFile("recorded/" + f.Name())
		if err != nil {
			return nil, err
		}
		d, err := parseMatrix("cmd/btconform/internal/interop/recorded/"+f.Name(), text)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

const matrixHead = "encoder\tblobs' hash\texact\tlow 31\twrong\treject\tcrash\tfailed, for example"

// AppendMatrix appends a recording: a line that describes the decoder, then one line per
// encoder, with fields separated by tabs.
func AppendMatrix(dst []byte, d *MatrixDecoder) []byte {
	dst = fmt.Appendf(dst, "decoder\t%s\t%s\n%s\n", d.Name, d.About, matrixHead)
	for _, c := range d.Cells {
		dst = fmt.Appendf(dst, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\n", c.Encoder, c.Hash, c.Exact, c.Low, c.Wrong,
			c.Reject, c.Crash, strings.Join(c.Failed, " "))
	}
	return dst
}

func parseMatrix(file string, text []byte) (*MatrixDecoder, error) {
	lines := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	head := strings.Split(string(lines[0]), "\t")
	if len(head) != 3 || head[0] != "decoder" {
		return nil, &conformance.ParseError{File: file, Row: 1, Msg: "expected decoder, a name, and what it is, with tabs between"}
	}
	if len(lines) < 2 || string(lines[1]) != matrixHead {
		return nil, &conformance.ParseError{File: file, Row: 2, Msg: fmt.Sprintf("expected %q", matrixHead)}
	}
	d := &MatrixDecoder{Name: head[1], About: head[2]}
	for i, line := range lines[2:] {
		words := strings.Split(string(line), "\t")
		if len(words) != 8 {
			return nil, &conformance.ParseError{File: file, Row: i + 3, Msg: fmt.Sprintf("%d columns, expected 8", len(words))}
		}
		c := MatrixCell{Encoder: words[0], Hash: words[1], Failed: strings.Fields(words[7])}
		for n, field := range []*int{&c.Exact, &c.Low, &c.Wrong, &c.Reject, &c.Crash} {
			var err error
			if *field, err = strconv.Atoi(words[n+2]); err != nil {
				return nil, &conformance.ParseError{File: file, Row: i + 3, Msg: fmt.Sprintf("column %d is %q, expected a number", n+3, words[n+2])}
			}
		}
		d.Cells = append(d.Cells, c)
	}
	return d, nil
}
