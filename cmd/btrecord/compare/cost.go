//go:build linux

package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
)

// rounds is how often each tool runs; they take turns, and the best run counts.
const rounds = 4

// tool is a way to run a program.
type tool struct {
	name  string
	over  int      // what its cost is added to: a tool before it, -1 if to nothing
	env   []string // where it writes is put in for OUT
	args  []string // before the program's
	once  bool     // it is slow
	cpu   float64  // seconds, the best
	rss   int64    // KB
	extra int64    // KB of a process beside
}

// cost prints what recording adds to an allocation-heavy program.
func (b *bench) cost() error {
	tcmalloc := "/usr/lib/x86_64-linux-gnu/libtcmalloc.so.4"
	out := b.path("out")
	tools := []tool{
		{name: "alone", over: -1},
		{name: "btrecord", env: []string{"LD_PRELOAD=" + b.library, "LWSBT_OUT=" + out}},
		{name: "btrecord --events", env: []string{"LD_PRELOAD=" + b.library, "LWSBT_OUT=" + out, "LWSBT_EVENTS=1"}},
		{name: "heaptrack", env: []string{"LD_PRELOAD=" + b.heaptrack, "DUMP_HEAPTRACK_OUTPUT=" + out}},
		{name: "heaptrack's command, all its processes", args: []string{"heaptrack", "-o", out}},
	}
	if _, err := os.Stat(tcmalloc); err == nil {
		tools = append(tools, tool{name: "tcmalloc alone", over: -1, env: []string{"LD_PRELOAD=" + tcmalloc}},
			tool{name: "tcmalloc, HEAPPROFILE", over: len(tools), env: []string{"LD_PRELOAD=" + tcmalloc, "HEAPPROFILE=" + out}, once: true})
	}
	tools = append(tools, tool{name: "DHAT", once: true, args: []string{"valgrind", "--tool=dhat", "--dhat-out-file=/dev/null"}})
	program := []string{"perl", b.path("churn.pl")}
	for i := range tools {
		tools[i].cpu = math.Inf(1)
	}
	files := map[string]int64{}
	var total codec.Header
	var records int
	for round := range rounds {
		for i := range tools {
			t := &tools[i]
			if t.once && round > 0 {
				continue
			}
			os.Remove(out)
			_, cpu, _, err := b.run(append(append([]string{}, t.args...), program...), t.env...)
			if err != nil {
				return err
			}
			t.cpu = min(t.cpu, cpu)
			if round > 0 {
				continue
			}
			if info, err := os.Stat(out); err == nil {
				files[t.name] = info.Size()
			}
			switch t.name {
			case "btrecord --events":
				if records, err = readEvents(out, &total); err != nil {
					return err
				}
				packed, err := exec.Command("zstd", "-3", "-q", "-c", out).Output()
				if err != nil {
					return fmt.Errorf("zstd: %w", err)
				}
				files["packed"] = int64(len(packed))
			}
		}
	}
	allocs, _ := total.Uint("allocs")
	frees, _ := total.Uint("frees")
	pairs := float64(allocs)
	if err := b.memory(tools, out); err != nil {
		return err
	}
	fmt.Printf("A perl script with %d allocations and %d frees; CPU time of the process, the best of %d runs in turns. Memory: of one that keeps %d allocations, the largest resident set less that of the program alone.\n\n",
		allocs, frees, rounds, kept)
	fmt.Println("| | CPU seconds | added, µs per allocation and its free | of heaptrack's | memory added, bytes per live allocation |")
	fmt.Println("| --- | --- | --- | --- | --- |")
	added := func(t *tool) float64 { return (t.cpu - tools[t.over].cpu) / pairs * 1e6 }
	for i := range tools {
		t := &tools[i]
		if t.over < 0 {
			fmt.Printf("| %s | %.3f | | | |\n", t.name, t.cpu)
			continue
		}
		text := ""
		if t.rss > 0 {
			text = fmt.Sprintf("%.0f", float64(t.rss-tools[t.over].rss)*1024/float64(kept))
		}
		if t.extra > 0 {
			text += fmt.Sprintf(", and %.0f in heaptrack_interpret", float64(t.extra)*1024/float64(kept))
		}
		fmt.Printf("| %s | %.3f | %.3f | %.0f %% | %s |\n", t.name, t.cpu, added(t), 100*added(t)/added(&tools[3]), text)
	}
	fmt.Printf("\nWith --events the file has %d events in %d bytes, %.1f bytes per event, and %.1f after zstd -3; heaptrack's raw file has %d bytes.\n",
		records, files["btrecord --events"], float64(files["btrecord --events"])/float64(records),
		float64(files["packed"])/float64(records), files["heaptrack"])
	return nil
}

// kept is what keep.pl holds at its end, each in a block of its own.
const kept = 300000

// memory runs each tool on a program that keeps what it allocates.
func (b *bench) memory(tools []tool, out string) (err error) {
	for i := range tools {
		t := &tools[i]
		os.Remove(out)
		if t.once || strings.Contains(t.name, "command") {
			continue
		}
		if _, _, t.rss, err = b.run(append(append([]string{}, t.args...), "perl", b.path("keep.pl")), t.env...); err != nil {
			return err
		}
		if t.name == "heaptrack" {
			c := exec.Command("sh", "-c", b.interpreter()+" <"+out+" >/dev/null")
			if text, err := c.CombinedOutput(); err != nil {
				return fmt.Errorf("heaptrack_interpret: %w\n%s", err, text)
			}
			t.extra = maxRSS(c)
		}
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
