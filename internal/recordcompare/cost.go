//go:build linux

package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/lwsbt/lwsbt/codec"
)

const (
	// rounds is how often each tool runs; they take turns, and the least of each
	// figure counts.
	rounds = 6
	// long and short are the turns of churn.pl's loop; slow tools get the short one.
	long, short = 200000, 20000
	// kept is what keep.pl holds in blocks of its own in a first run; a second one
	// holds twice as many.
	kept = 300000
)

// tool is a way to run a program.
type tool struct {
	name string
	over int      // what its cost is added to: a tool before it, -1 if to nothing
	env  []string // environment, beside that of all
	args []string // before the program's
	slow bool     // it runs once, with less to do

	wall float64 // seconds from start to end of the command
	all  float64 // CPU seconds of all its processes
	own  float64 // CPU seconds of the program's thread, until its last statement
	file int64   // bytes written

	memory, beside float64 // bytes per live allocation; in a process beside
}

// The tools, by index.
const (
	alone = iota
	aloneShort
	command
	commandEvents
	heaptrack
	library
	libraryEvents
	heaptrackLibrary
)

func (b *bench) tools(out string) []tool {
	preload := func(env ...string) []string { return append(env, "LD_PRELOAD="+b.library, "LWSBT_OUT="+out) }
	record := []string{b.path("btrecord"), "-q", "--library", b.library, "-o", out}
	with := func(args ...string) []string { return append(append([]string{}, record...), args...) }
	tools := []tool{
		alone:            {name: "alone", over: -1},
		aloneShort:       {name: "alone, a tenth of the work", over: -1, slow: true},
		command:          {name: "`btrecord`", args: with("--")},
		commandEvents:    {name: "`btrecord --events`", args: with("--events", "--")},
		heaptrack:        {name: "`heaptrack`", args: []string{"heaptrack", "-o", out}},
		library:          {name: "liblwsbt.so", env: preload()},
		libraryEvents:    {name: "liblwsbt.so, `LWSBT_EVENTS=1`", env: preload("LWSBT_EVENTS=1")},
		heaptrackLibrary: {name: "libheaptrack_preload.so", env: []string{"LD_PRELOAD=" + b.heaptrack, "DUMP_HEAPTRACK_OUTPUT=" + out}},
	}
	tcmalloc := "/usr/lib/x86_64-linux-gnu/libtcmalloc.so.4"
	if _, err := os.Stat(tcmalloc); err == nil {
		tools = append(tools, tool{name: "tcmalloc alone", over: -1, slow: true, env: []string{"LD_PRELOAD=" + tcmalloc}},
			tool{name: "tcmalloc, `HEAPPROFILE`", over: len(tools), slow: true, env: []string{"LD_PRELOAD=" + tcmalloc, "HEAPPROFILE=" + out}})
	}
	return append(tools, tool{name: "DHAT", over: aloneShort, slow: true, args: []string{"valgrind", "-q", "--tool=dhat", "--dhat-out-file=/dev/null"}})
}

// cost prints what recording adds to an allocation-heavy program.
func (b *bench) cost() error {
	out := b.path("out")
	if text, err := exec.Command("go", "build", "-o", b.path("btrecord"), "./cmd/btrecord").CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, text)
	}
	tools := b.tools(out)
	for i := range tools {
		tools[i].wall, tools[i].all, tools[i].own = math.Inf(1), math.Inf(1), math.Inf(1)
	}
	var total codec.Header
	var records int
	var packed []byte
	for round := range rounds {
		for i := range tools {
			t := &tools[i]
			if t.slow && round > 0 && i != aloneShort {
				continue
			}
			if err := b.measure(t, out); err != nil {
				return err
			}
			if i != libraryEvents || round > 0 {
				continue
			}
			var err error
			if records, err = readEvents(out, &total); err != nil {
				return err
			}
			if packed, err = exec.Command("zstd", "-3", "-q", "-c", out).Output(); err != nil {
				return fmt.Errorf("zstd: %w", err)
			}
		}
	}
	if err := b.memory(tools, out); err != nil {
		return err
	}
	allocs, _ := total.Uint("allocs")
	frees, _ := total.Uint("frees")
	fmt.Printf("A perl script with %d allocations and %d frees (tcmalloc and DHAT: a tenth of them), %d runs in turns, the least of each figure.\n\n", allocs, frees, rounds)
	printCost(tools, float64(allocs))
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		fmt.Printf("\nLoad at the end: %s", load)
	}
	fmt.Printf("\nWith --events the recording has %d events in %d bytes: %.1f bytes per event, and %.1f after zstd -3. Heaptrack's library writes %d bytes, its command %d, compressed.\n",
		records, tools[libraryEvents].file, float64(tools[libraryEvents].file)/float64(records),
		float64(len(packed))/float64(records), tools[heaptrackLibrary].file, tools[heaptrack].file)
	return nil
}

// measure runs a tool once.
func (b *bench) measure(t *tool, out string) error {
	n := long
	if t.slow {
		n = short
	}
	own := b.path("own")
	os.Remove(out)
	os.Remove(out + ".zst")
	args := append(append([]string{}, t.args...), "perl", b.path("churn.pl"), strconv.Itoa(n))
	begun := time.Now()
	_, all, _, err := b.run(args, nil, append([]string{"OWN=" + own}, t.env...)...)
	if err != nil {
		return err
	}
	t.wall, t.all = min(t.wall, time.Since(begun).Seconds()), min(t.all, all)
	text, err := os.ReadFile(own)
	if err != nil {
		return err
	}
	ns, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
	if err != nil {
		return err
	}
	t.own = min(t.own, ns/1e9)
	for _, name := range []string{out, out + ".zst"} {
		if info, err := os.Stat(name); err == nil {
			t.file = info.Size()
		}
	}
	return nil
}

// printCost prints the table. pairs is how many allocations the long script has.
func printCost(tools []tool, pairs float64) {
	fmt.Println("| | wall, s | CPU, all processes, s | CPU, program, s | wall added, µs | CPU added, all, µs | CPU added, program, µs | bytes per live allocation |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- |")
	added := func(t *tool) [3]float64 {
		n := pairs / 1e6
		if t.slow {
			n *= float64(short) / long
		}
		over := &tools[t.over]
		return [3]float64{(t.wall - over.wall) / n, (t.all - over.all) / n, (t.own - over.own) / n}
	}
	theirs := added(&tools[heaptrack])
	for i := range tools {
		t := &tools[i]
		fmt.Printf("| %s | %.3f | %.3f | %.3f |", t.name, t.wall, t.all, t.own)
		if t.over < 0 {
			fmt.Println(" | | | |")
			continue
		}
		for k, v := range added(t) {
			fmt.Printf(" %.3f (%.0f %%) |", v, 100*v/theirs[k])
		}
		if t.memory != 0 {
			fmt.Printf(" %.1f", t.memory)
		}
		if t.beside != 0 {
			fmt.Printf(", and %.1f in heaptrack_interpret", t.beside)
		}
		fmt.Println(" |")
	}
}

// memory finds what each live allocation costs: how the largest resident set grows
// when twice as many are kept, less how the program's own does.
func (b *bench) memory(tools []tool, out string) error {
	growth := func(rss [2]int64) float64 { return float64(rss[1]-rss[0]) * 1024 / kept }
	var plain float64
	for _, i := range []int{alone, library, libraryEvents, heaptrackLibrary} {
		t := &tools[i]
		var rss, beside [2]int64
		for k := range 2 {
			var err error
			os.Remove(out)
			// What the system says of a child at its end counts this process's own.
			own := b.path("own")
			if _, _, _, err = b.run([]string{"perl", b.path("keep.pl"), strconv.Itoa(kept * (k + 1))}, nil, append([]string{"OWN=" + own}, t.env...)...); err != nil {
				return err
			}
			text, err := os.ReadFile(own)
			if err != nil {
				return err
			}
			if rss[k], err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err != nil {
				return err
			}
			if i == heaptrackLibrary {
				c := exec.Command(b.interpreter())
				if c.Stdin, err = os.Open(out); err != nil {
					return err
				}
				if err := c.Run(); err != nil {
					return fmt.Errorf("heaptrack_interpret: %w", err)
				}
				beside[k] = maxRSS(c)
			}
		}
		if i == alone {
			plain = growth(rss)
			continue
		}
		t.memory, t.beside = growth(rss)-plain, growth(beside)
	}
	return nil
}

// readEvents counts the events of a recording and reads its last total.
func readEvents(path string, total *codec.Header) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	i := bytes.LastIndex(text, []byte("~h#total "))
	if i < 0 {
		return 0, fmt.Errorf("no total in the recording")
	}
	line, _, _ := strings.Cut(string(text[i:]), "\n")
	return bytes.Count(text, []byte(codec.LeadInEvent)), codec.ParseHeader(total, []byte(line))
}
