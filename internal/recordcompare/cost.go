//go:build linux

package main

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
)

// rounds is the number of runs of each tool, in turns. The minimum of each figure counts.
const rounds = 5

// cost is the cost of a run.
type cost struct {
	all  float64 // CPU seconds of all its processes
	own  float64 // CPU seconds of the program's thread until its last statement, if reported
	file int64   // bytes of the recording
}

func (c *cost) least(d cost) {
	c.all, c.own, c.file = min(c.all, d.all), min(c.own, d.own), d.file
}

// cost prints the cost of recording programs.
func (b *bench) cost() error {
	out := b.path("out")
	record := []string{b.path("btrecord"), "-q", "-o", out}
	tools := []struct {
		name string
		args []string
	}{
		{"alone", nil},
		{"btrecord", append(record, "--")},
		{"btrecord --events", append(record, "--events", "--")},
		{"btrecord --sample 512K", append(record, "--sample", "512K", "--")},
		{"heaptrack", []string{"heaptrack", "-o", out}},
	}
	// Subtract the start of each tool, which is not a cost of events.
	empty, err := b.turns(tools[0].args, program{args: []string{"cat", "/dev/null"}})
	starts := []cost{empty}
	for _, t := range tools[1:] {
		c, e := b.turns(t.args, program{args: []string{"cat", "/dev/null"}})
		starts, err = append(starts, c), cmp.Or(err, e)
	}
	if err != nil {
		return err
	}
	fmt.Println("| program | tool | CPU, s | added net of the tool's start, ns per allocation | of heaptrack's | in the program, ns per allocation | recording, bytes |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- |")
	programs := append([]program{{"perl, more", []string{"perl", b.path("churn.pl"), "200000"}, nil}}, b.programs()...)
	for _, p := range programs {
		if p.drive != nil {
			continue
		}
		costs := make([]cost, len(tools))
		for i := range costs {
			costs[i] = cost{math.Inf(1), math.Inf(1), 0}
		}
		for range rounds {
			for i, t := range tools {
				c, err := b.once(t.args, p)
				if err != nil {
					return err
				}
				costs[i].least(c)
			}
		}
		sums, err := b.ours(p)
		if err != nil {
			return err
		}
		added := func(i int) float64 {
			return (costs[i].all - costs[0].all - (starts[i].all - starts[0].all)) / float64(sums.allocs) * 1e9
		}
		for i, t := range tools {
			fmt.Printf("| %s | %s | %.3f |", []string{p.name, "", "", "", ""}[i], t.name, costs[i].all)
			if i == 0 {
				fmt.Printf(" %d allocations | | | |\n", sums.allocs)
				continue
			}
			own := ""
			if d := costs[i].own - costs[0].own; d > 0 {
				own = fmt.Sprintf("%.0f", d/float64(sums.allocs)*1e9)
			}
			fmt.Printf(" %.0f | %.0f %% | %s | %d |\n", added(i), 100*added(i)/added(len(tools)-1), own, costs[i].file)
		}
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		fmt.Printf("\nLoad at the end: %s", load)
	}
	return nil
}

// turns returns the least of several runs.
func (b *bench) turns(tool []string, p program) (cost, error) {
	least := cost{math.Inf(1), math.Inf(1), 0}
	for range rounds {
		c, err := b.once(tool, p)
		if err != nil {
			return c, err
		}
		least.least(c)
	}
	return least, nil
}

// once runs a program with a tool.
func (b *bench) once(tool []string, p program) (c cost, err error) {
	own, out := b.path("own"), b.path("out")
	for _, path := range []string{own, out, out + ".zst", out + ".raw.zst"} {
		os.Remove(path)
	}
	args := append(append([]string{}, tool...), p.args...)
	if _, c.all, _, err = b.run(args, nil, "OWN="+own); err != nil {
		return c, err
	}
	if text, err := os.ReadFile(own); err == nil {
		ns, _ := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
		c.own = ns / 1e9
	}
	for _, name := range []string{out, out + ".zst", out + ".raw.zst"} {
		if info, err := os.Stat(name); err == nil {
			c.file = info.Size()
		}
	}
	return c, nil
}
