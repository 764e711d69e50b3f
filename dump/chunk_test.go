package dump_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/dump"
)

// scanned is what a scanner says of a log: its records, the text between, and counts.
func scanned(sc *dump.Scanner, text *strings.Builder) (out []string) {
	for sc.Next() {
		r := *sc.Record()
		err := fmt.Sprint(r.Err)
		r.Err = nil
		out = append(out, fmt.Sprintf("%q %+v %s", text, r, err))
		text.Reset()
	}
	return out
}

// hostileLog is some 600 KB of records, damaged ones, other text and long lines.
func hostileLog(rng *rand.Rand, lineEnds int, long bool) string {
	parts := []string{readme, twoPads, urlText, tooDeep, unpad, readme[:20], "~b#size: 1, 0x2", "~e#AAA", "~h#begin 1", "{{{reset}}}", "[12:01] N: ", "\x00", "~~m#"}
	var b strings.Builder
	for b.Len() < 600<<10 {
		b.WriteString(parts[rng.IntN(len(parts))])
		switch rng.IntN(lineEnds) {
		case 0:
			b.WriteByte('\n')
		case 1:
			b.WriteString("\r\n")
		}
		if long && rng.IntN(3000) == 0 {
			b.WriteString(strings.Repeat("a line without an end ", 1+rng.IntN(9000)))
		}
	}
	return b.String()
}

// Chunks that are scanned apart, by several goroutines, say together what the whole log
// says.
func TestChunksAreTheLog(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for i := range 12 {
		log := hostileLog(rng, 3+i%3*20, i%4 == 3)
		if i%2 == 0 {
			log += "\n"
		}
		want := dump.NewScanner(strings.NewReader(log), "x")
		var wantText strings.Builder
		want.Text, want.Recordings = &wantText, i%2 == 0
		records := scanned(want, &wantText)

		workers := 1 + i%4
		lanes := workers * dump.Lanes
		scanners, texts, found := make([]*dump.Scanner, lanes), make([]strings.Builder, lanes), make([][]string, lanes)
		for w := range scanners {
			scanners[w] = dump.NewScanner(nil, "")
			scanners[w].Text, scanners[w].Recordings = &texts[w], want.Recordings
		}
		var got []string
		var tally dump.Tally
		chunks, carried := 0, ""
		err := dump.NewChunks(&pieces{strings.NewReader(log), rng}, "x").Each(workers, func(w int, c *dump.Chunk) {
			scanners[w].ResetChunk(c)
			scanners[w].SetState(dump.State{})
			found[w] = scanned(scanners[w], &texts[w])
		}, func(w int, c *dump.Chunk) error {
			chunks++
			if len(found[w]) > 0 { // what was left of the chunk before stands in front
				found[w][0] = `"` + carried + found[w][0][1:]
				carried = ""
			}
			q := fmt.Sprintf("%q", texts[w].String())
			carried += q[1 : len(q)-1]
			texts[w].Reset()
			got = append(got, found[w]...)
			tally.Take(scanners[w].Tally())
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(records) || i%4 != 3 && chunks < 4 {
			t.Fatalf("log %d: %d records of %d in %d chunks", i, len(got), len(records), chunks)
		}
		for n := range got {
			if got[n] != records[n] {
				t.Fatalf("log %d, record %d:\n%s\n%s", i, n, got[n], records[n])
			}
		}
		if q := fmt.Sprintf("%q", wantText.String()); `"`+carried+`"` != q {
			t.Errorf("log %d: other text behind the last record", i)
		}
		if w := *want.Tally(); fmt.Sprint(tally.Faults(), tally.Cuts(), tally.Bytes, tally.Lines, tally.Read, tally.ByKind, tally.Lenient, tally.Cut, tally.CutByLws, tally.Unreadable) !=
			fmt.Sprint(w.Faults(), w.Cuts(), w.Bytes, w.Lines, w.Read, w.ByKind, w.Lenient, w.Cut, w.CutByLws, w.Unreadable) {
			t.Errorf("log %d: tally\n%+v\n%+v", i, tally, w)
		}
	}
}

// What was read before an error counts, and an error of each ends Each.
func TestChunksEnd(t *testing.T) {
	log := strings.Repeat(readme+"\n", 20_000)
	broken := errors.New("broken")
	var got bytes.Buffer
	err := dump.NewChunks(io.MultiReader(strings.NewReader(log), brokenReader{broken}), "x").Each(3, func(int, *dump.Chunk) {},
		func(_ int, c *dump.Chunk) error { got.Write(c.Data); return nil })
	if !errors.Is(err, broken) || got.String() != log {
		t.Errorf("%v after %d of %d bytes", err, got.Len(), len(log))
	}
	for workers := 1; workers <= 3; workers++ {
		calls := 0
		err := dump.NewChunks(strings.NewReader(log), "x").Each(workers, func(int, *dump.Chunk) {},
			func(int, *dump.Chunk) error { calls++; return broken })
		if err != broken || calls != 1 {
			t.Errorf("%d workers: %v after %d calls, want %v", workers, err, calls, broken)
		}
	}
}

// Chunks wait for one that takes long, as many as a worker has lanes, and have their turns
// after it, or none if that ends Each.
func TestChunksWaitForOne(t *testing.T) {
	log := strings.Repeat(readme+"\n", 40_000)
	broken := errors.New("broken")
	for _, end := range []error{nil, broken} {
		others, begun := make(chan bool, dump.Lanes), make(chan bool)
		var got bytes.Buffer
		err := dump.NewChunks(strings.NewReader(log), "x").Each(2, func(_ int, c *dump.Chunk) {
			if c.Offset == 0 {
				close(begun)
				for range dump.Lanes {
					select {
					case <-others:
					case <-time.After(time.Minute):
						t.Error("other chunks wait before they are worked on")
					}
				}
				return
			}
			<-begun
			select {
			case others <- true:
			default:
			}
		}, func(_ int, c *dump.Chunk) error { got.Write(c.Data); return end })
		if err != end {
			t.Errorf("%v, want %v", err, end)
		}
		if all := got.String() == log; all != (end == nil) || got.Len() == 0 {
			t.Errorf("%d of %d bytes", got.Len(), len(log))
		}
	}
}

// Each does not wait for a read when it has ended.
func TestChunksEndWhileReading(t *testing.T) {
	log := strings.Repeat(readme+"\n", 6000) // more than one chunk, less than two
	r := waitingReader{make(chan bool), make(chan bool)}
	defer close(r.end)
	ended := make(chan error, 1)
	go func() {
		src := io.MultiReader(strings.NewReader(log), r)
		ended <- dump.NewChunks(src, "x").Each(2, func(int, *dump.Chunk) {}, func(int, *dump.Chunk) error {
			<-r.begun // the other worker reads the second chunk
			return io.EOF
		})
	}()
	select {
	case err := <-ended:
		if err != io.EOF {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("Each waits for a read")
	}
}

// waitingReader is a reader that says when it is read, once, and waits for its end.
type waitingReader struct{ begun, end chan bool }

func (w waitingReader) Read([]byte) (int, error) {
	close(w.begun)
	<-w.end
	return 0, io.EOF
}

type brokenReader struct{ err error }

func (f brokenReader) Read([]byte) (int, error) { return 0, f.err }
