package main

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/heap/internal/worldtest"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// Sentences of btheap leaks are held to the truth of the logs that they are about. The seeds are
// those that nothing is fitted to (see the tests of heap/leak).
const heldOut = 7_000_000

// claim counts a kind of sentence, and those that are untrue.
type claim struct{ said, untrue int }

type claims map[string]*claim

// hold counts a sentence. Those that are untrue are logged with the command's output.
func (c claims) hold(t *testing.T, kind, log string, right bool, out string) {
	t.Helper()
	if c[kind] == nil {
		c[kind] = &claim{}
	}
	c[kind].said++
	if !right {
		c[kind].untrue++
		t.Logf("untrue, %s: %s\n%s", kind, log, strings.Join(strings.SplitAfterN(out, "\n", 8)[:min(7, strings.Count(out, "\n"))], ""))
	}
}

// check fails for kinds of which more sentences than their share are untrue.
func (c claims) check(t *testing.T, limits map[string]float64) {
	t.Helper()
	for kind, limit := range limits {
		of := c[kind]
		if of == nil && !cmdtest.Full() {
			continue
		}
		if of == nil {
			t.Errorf("no sentence of the kind %q", kind)
			continue
		}
		t.Logf("%s: %d of %d are untrue", kind, of.untrue, of.said)
		n := float64(of.said)
		if float64(of.untrue) > limit*n+2*math.Sqrt(n*limit*(1-limit))+0.5 {
			t.Errorf("%s: %d of %d are untrue, of which %g may be", kind, of.untrue, of.said, limit)
		}
	}
}

// heapText returns a log of the free memory of a heap as ESP-IDF prints it.
func heapText(log worldtest.Log) string {
	var b strings.Builder
	for k, values := range log.Series[0].Values {
		b.WriteString("rst:0xc (SW_CPU_RESET),boot:0x13 (SPI_FAST_FLASH_BOOT)\n")
		for i, free := range values {
			if log.Untimed {
				fmt.Fprintf(&b, "Free heap: %.0f\n", free)
			} else {
				fmt.Fprintf(&b, "I (%.0f) mem: Free heap: %.0f\n", log.Boots[k].Hours[i]*3.6e6, free)
			}
		}
	}
	return b.String()
}

// frame is the innermost frame of path k.
func frame(k int) uint64 { return 0x420007 + 0x80*uint64(k) }

// pathText returns a log of dumps of call paths: ~p# lines, or, where a part of the records is
// lost, ~m# lines without these.
func pathText(t *testing.T, log worldtest.Log, kept float64) string {
	t.Helper()
	r := rand.New(rand.NewPCG(log.Seed, 1))
	var b []byte
	for k, boot := range log.Boots {
		b = append(b, "~h#boot prog=fw w=32 code=400000+400000\n"...)
		w := callpath.Writer{}
		for i, hour := range boot.Hours {
			b = fmt.Appendf(b, "~h#begin %d t=%.0f\n", i, hour*3.6e9)
			blocks, bytes := 0, 0
			w.Dump = uint32(i)
			for path, s := range log.Series {
				live := int(s.Values[k][i]/s.Block + 0.5)
				if live == 0 {
					continue
				}
				blocks, bytes = blocks+live, bytes+live*int(s.Block)
				var err error
				if kept == 1 {
					e := callpath.Entry{Live: uint64(live), Bytes: uint64(live) * uint64(s.Block)}
					e.Frames = []callpath.Frame{{Value: 0x100}, {Value: frame(path) - 0x400000}}
					if b, err = w.Append(b, &e); err != nil {
						t.Fatal(err)
					}
					continue
				}
				blob, err := codec.Encoder{}.AppendBlob(nil, &codec.Stack{PCs: []uint64{frame(path), 0x400100}, Size: uint64(s.Block)}, nil)
				if err != nil {
					t.Fatal(err)
				}
				for range live {
					if r.Float64() < kept {
						b = codec.AppendLine(b, blob)
						b = append(b, '\n')
					}
				}
			}
			b = w.Flush(b)
			b = fmt.Appendf(b, "~h#end %d n=%d b=%d\n", i, blocks, bytes)
		}
	}
	return string(b)
}

var (
	noneAbove = regexp.MustCompile(`none(?: of the others)? above ([\d.,]+) bytes per`)
	leakOf    = regexp.MustCompile(`leak, (\d+) %,? +\+([\d.,]+) bytes per \w+(?: \(([-\d.,]+) to ([-\d.,]+)\))?`)
)

func number(t *testing.T, text string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// leaksOf returns what btheap leaks prints of a log, with the probabilities, which command leaves out.
func leaksOf(log string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	code = run([]string{"leaks", "-q", "-n", "0", "-"}, strings.NewReader(log), &out, &errs)
	return out.String(), errs.String(), code
}

// TestSentencesOfHeaps holds what is said of a heap's free memory.
func TestSentencesOfHeaps(t *testing.T) {
	every, seeds := 5, 1 // all worlds take half a minute
	if cmdtest.Full() {
		every, seeds = 1, 2
	}
	said := claims{}
	for i, w := range worldtest.All() {
		if i%every != 0 {
			continue
		}
		for _, n := range []int{48, 144} {
			for seed := range seeds {
				log := w.Make(heldOut+uint64(seed), n)
				truth := log.Series[0].Truth
				if truth.Blind {
					continue
				}
				out, errs, code := leaksOf(heapText(log))
				if code != 0 {
					t.Fatalf("%s/%d/%d: exit %d: %s", w.Name, n, heldOut+seed, code, errs)
				}
				name := fmt.Sprintf("%s/%d/%d, rate %.4g", w.Name, n, heldOut+seed, truth.Rate)
				flat := strings.Join(strings.Fields(out), " ")
				if m := noneAbove.FindStringSubmatch(flat); m != nil {
					said.hold(t, "none above", name, truth.Open || truth.Rate <= 1.05*number(t, m[1]), out)
				}
				m := leakOf.FindStringSubmatch(flat)
				said.hold(t, "the first line and the heap's agree", name, (m != nil) == strings.HasPrefix(flat, "the heap leaks"), out)
				if m == nil {
					continue
				}
				if !truth.Open {
					said.hold(t, "leak", name, truth.Leak, out)
				}
				if number(t, m[1]) >= 95 {
					said.hold(t, "sure leak", name, truth.Leak, out)
				}
				if truth.Leak {
					low, high := number(t, m[2]), number(t, m[2])
					if m[3] != "" {
						low, high = number(t, m[3]), number(t, m[4])
					}
					said.hold(t, "between", name, truth.Rate >= 0.99*low && truth.Rate <= 1.01*high, out)
				}
			}
		}
	}
	said.check(t, map[string]float64{
		"none above": 0.01, "the first line and the heap's agree": 0, "leak": 0.05, "sure leak": 0.03, "between": 0.15,
	})
}

// TestSentencesOfPaths holds what is said of call paths, of whole logs and of those that lost
// lines.
func TestSentencesOfPaths(t *testing.T) {
	every, seeds := 5, 1
	if cmdtest.Full() {
		every = 1
	}
	said := claims{}
	for i, w := range worldtest.All() {
		if w.HeapOnly() || i%every != 0 {
			continue
		}
		for _, kept := range []float64{1, 0.9} {
			for seed := range seeds {
				log := w.Paths(heldOut+uint64(seed), 48, 7)
				if log.Kept < 1 { // its values are thinned already
					continue
				}
				out, errs, code := leaksOf(pathText(t, log, kept))
				if code != 0 {
					t.Fatalf("%s/%d: exit %d: %s", w.Name, heldOut+seed, code, errs)
				}
				holdPaths(t, said, fmt.Sprintf("%s/48/%d/paths, %g kept", w.Name, heldOut+seed, kept), log, out)
			}
		}
	}
	said.check(t, map[string]float64{"none above": noneAbovePaths, "leak": 0.05, "sure leak": 0.03, "between": 0.15})
}

// noneAbovePaths is the share of logs of which "none above" is known to be untrue. It is to be 0.01.
const noneAbovePaths = 0.02

// holdPaths holds one output to the truth of its log. A card begins with its verdict, and ends with its frames.
func holdPaths(t *testing.T, said claims, name string, log worldtest.Log, out string) {
	t.Helper()
	cards := map[int]string{} // the verdict's line by path
	for _, card := range strings.Split(out, "\n\n") {
		for k := range log.Series {
			if strings.Contains(card, fmt.Sprintf("%#x", frame(k))) {
				cards[k] = strings.Join(strings.Fields(card), " ")
			}
		}
	}
	fastest := 0.0
	for k, s := range log.Series {
		truth := s.Truth
		if truth.Leak && !strings.HasPrefix(cards[k], "leak") && !strings.HasPrefix(cards[k], "cannot tell") {
			fastest = math.Max(fastest, truth.Rate)
		}
		m := leakOf.FindStringSubmatch(cards[k])
		if m == nil || !strings.HasPrefix(cards[k], "leak") {
			continue
		}
		if !truth.Open {
			said.hold(t, "leak", fmt.Sprintf("%s, path %d", name, k), truth.Leak, cards[k])
		}
		if number(t, m[1]) >= 95 {
			said.hold(t, "sure leak", fmt.Sprintf("%s, path %d", name, k), truth.Leak, cards[k])
		}
		if truth.Leak && m[3] != "" {
			said.hold(t, "between", fmt.Sprintf("%s, %g", name, truth.Rate), truth.Rate >= 0.99*number(t, m[3]) && truth.Rate <= 1.01*number(t, m[4]), cards[k])
		}
	}
	if m := noneAbove.FindStringSubmatch(strings.Join(strings.Fields(out), " ")); m != nil {
		said.hold(t, "none above", fmt.Sprintf("%s, %.4g", name, fastest), fastest <= 1.05*number(t, m[1]), out)
	}
}
