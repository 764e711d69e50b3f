// Leakbench compares ways to find a leak in repeated heap dumps, on simulated logs of which
// it knows the leak. docs/leaks.md describes the logs and has the table.
//
//	go run ./internal/leakbench -logs 150 -seed 1
package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"

	"github.com/lwsbt/lwsbt/profile"
)

func main() {
	logs := flag.Int("logs", 150, "logs with a leak, and as many without, in each column")
	seed := flag.Uint64("seed", 1, "of the random numbers")
	mild := flag.Bool("mild", false, "65 instead of 29 % of the call paths are constant")
	flag.Parse()
	b := newBench(columns, *logs, *seed, *mild)
	b.write(os.Stdout)
}

// column is a column of the table.
type column struct {
	name string
	setting
}

var columns = []column{
	{"4", setting{dumps: 4, boots: 1}}, {"8", setting{dumps: 8, boots: 1}}, {"20", setting{dumps: 20, boots: 1}},
	{"100", setting{dumps: 100, boots: 1}}, {"20L", setting{dumps: 20, boots: 1, lossy: true}},
	{"100L", setting{dumps: 100, boots: 1, lossy: true}}, {"20 3b", setting{dumps: 20, boots: 3}}, {"100 3b", setting{dumps: 100, boots: 3}},
}

// score is the result of one method in one column.
type score struct {
	logs, first    int // logs with a leak, and those in which it was ranked first
	accused        int // paths accused in the logs without a leak
	intervals, hit int // intervals of the rate, and those with the true rate
}

// bench holds all results.
type bench struct {
	columns []column
	scores  [][]score // by method and column
	// Of the rule, over the columns with at least 8 dumps:
	kinds map[string]*score                              // by kind of leak
	said  map[profile.Verdict]*struct{ first, leak int } // of the first path
}

// newBench runs all methods on the same logs.
func newBench(columns []column, logs int, seed uint64, mild bool) *bench {
	b := &bench{columns: columns, kinds: map[string]*score{}, said: map[profile.Verdict]*struct{ first, leak int }{}}
	b.scores = make([][]score, len(methods))
	for i := range b.scores {
		b.scores[i] = make([]score, len(columns))
	}
	for number, s := range columns {
		s.mild = mild
		for log := range 2 * logs {
			rng := rand.New(rand.NewPCG(seed, uint64(number)<<32|uint64(log)))
			w := simulate(rng, s.setting, log%2 == 0)
			for i, m := range methods {
				f := m.find(w)
				b.scores[i][number].add(w, f)
				if i == len(methods)-1 && s.dumps >= 8 {
					b.details(w, f)
				}
			}
		}
	}
	return b
}

func (s *score) add(w *simulated, f finding) {
	if w.leak < 0 {
		s.accused += f.accused
		return
	}
	s.logs++
	if f.first == w.leak {
		s.first++
	}
	if f.covered != 0 {
		s.intervals++
	}
	if f.covered > 0 {
		s.hit++
	}
}

// details counts the results of the rule.
func (b *bench) details(w *simulated, f finding) {
	said := b.said[f.says]
	if said == nil {
		said = &struct{ first, leak int }{}
		b.said[f.says] = said
	}
	said.first++
	if w.leak >= 0 && f.first == w.leak {
		said.leak++
	}
	if w.leak >= 0 {
		if b.kinds[w.kind] == nil {
			b.kinds[w.kind] = &score{}
		}
		b.kinds[w.kind].add(w, f)
	}
}

// write writes the table.
func (b *bench) write(out io.Writer) {
	fmt.Fprintf(out, "leak ranked first, %% of %d logs; columns: dumps, L: lines lost, 3b: three boots\n\n| method |", b.scores[0][0].logs)
	for _, s := range b.columns {
		fmt.Fprintf(out, " %s |", s.name)
	}
	fmt.Fprint(out, " mean | accused per log without a leak, 4 / 8 / 20 / 100 | interval of 90 % covers, 8 / 20 / 100 |\n|---|")
	fmt.Fprintln(out, strings.Repeat("---|", len(b.columns)+3))
	for i, m := range methods {
		fmt.Fprintf(out, "| %s |", m.name)
		sum := 0.0
		for _, s := range b.scores[i] {
			sum += s.rate()
			fmt.Fprintf(out, " %.0f |", s.rate())
		}
		var false, covers []string
		for c := range 4 {
			s := b.scores[i][c]
			false = append(false, strconv.FormatFloat(float64(s.accused)/float64(s.logs), 'g', 2, 64))
			switch {
			case c == 0:
			case s.intervals == 0:
				covers = append(covers, "-")
			default:
				covers = append(covers, fmt.Sprintf("%.0f", 100*float64(s.hit)/float64(s.intervals)))
			}
		}
		fmt.Fprintf(out, " %.0f | %s | %s |\n", sum/float64(len(columns)), strings.Join(false, " / "), strings.Join(covers, " / "))
	}
	fmt.Fprint(out, "\nthe rule, 8 dumps and more: leak ranked first, by kind of leak\n")
	for _, kind := range leakKinds {
		if s := b.kinds[kind]; s != nil {
			fmt.Fprintf(out, "%4.0f %%  %s (%d logs)\n", s.rate(), kind, s.logs)
		}
	}
	fmt.Fprint(out, "\nand how often the first path was the leak, half of the logs having one\n")
	for v := profile.Leaking + 1; v > 0; v-- {
		if s := b.said[v-1]; s != nil {
			fmt.Fprintf(out, "%4.0f %%  said %q (%d logs)\n", 100*float64(s.leak)/float64(s.first), v-1, s.first)
		}
	}
}

// rate returns the percentage of logs in which the leak was first.
func (s *score) rate() float64 { return 100 * float64(s.first) / float64(max(1, s.logs)) }

// number returns the path of the address in the name of a frame.
func number(name string) int {
	n, err := strconv.ParseUint(strings.TrimPrefix(name, "0x"), 16, 64)
	if err != nil {
		panic(err) // profile formats the name from an address
	}
	return int(n) - 1
}
