// Capture measures the capture backends of device/ against programs whose call
// stacks are known, because each function notes that it is entered; see docs/notes/capture.md.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

const usage = `usage: go run ./device/test/capture [flags]

Builds programs for each machine, compiler and level of optimization, runs them,
and compares what each backend captures with what was there.

  -programs KIND  generated (default), or real: those that .ci/sources fetches
  -program NAMES  of the real ones, only these, comma-separated
  -write FILE     replace the table between its marks in FILE
  -backend NAMES  only these, comma-separated; -machine, -compiler, -level as well
  -seeds N        programs of each cell (default 3)
  -seed N         the first seed (default 1)
  -j N            jobs at a time (default 2)
  -v              print where each backend fell short
  -flags FLAGS    more flags for the compilers
  -keep DIR       leave the last program's files in DIR

exit status: 0 all targets met, 1 one is not, 2 wrong usage, 3 a tool failed
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

type options struct {
	write, backend, machine, compiler, level, keep, dir string
	programs, program                                   string
	extra                                               string
	seeds, seed, jobs                                   int
	verbose                                             bool
}

func run(args []string, stdout, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("capture", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.programs, "programs", "generated", "")
	flags.StringVar(&o.program, "program", "", "")
	flags.StringVar(&o.write, "write", "", "")
	flags.StringVar(&o.backend, "backend", "", "")
	flags.StringVar(&o.machine, "machine", "", "")
	flags.StringVar(&o.compiler, "compiler", "", "")
	flags.StringVar(&o.level, "level", "", "")
	flags.StringVar(&o.extra, "flags", "", "")
	flags.StringVar(&o.keep, "keep", "", "")
	flags.StringVar(&o.dir, "dir", "device", "")
	flags.IntVar(&o.seeds, "seeds", 3, "")
	flags.IntVar(&o.seed, "seed", 1, "")
	flags.IntVar(&o.jobs, "j", 2, "")
	flags.BoolVar(&o.verbose, "v", false, "")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		if err == flag.ErrHelp {
			fmt.Fprint(stdout, usage)
			return 0
		}
		fmt.Fprint(stderr, usage)
		return 2
	}
	for level := range strings.SplitSeq(o.level, ",") {
		if level != "" && !slices.Contains(levels, level) {
			fmt.Fprintf(stderr, "capture: -level %q: expected some of %s\n", level, strings.Join(levels, ","))
			return 2
		}
	}
	if o.keep != "" {
		o.jobs = 1
		var err error
		if o.keep, err = filepath.Abs(o.keep); err != nil { // compilers run in it
			fmt.Fprintf(stderr, "capture: -keep %s: %v\n", o.keep, err)
			return 3
		}
	}
	measured := measure
	switch {
	case o.programs == "real" && o.write == "":
		measured = measureReal
	case o.programs != "generated":
		fmt.Fprintf(stderr, "capture: -programs %q: expected generated, or real without -write\n", o.programs)
		return 2
	}
	table, err := measured(o, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "capture: %v\n", err)
		if o.write != "" || table == nil {
			return 3
		}
	}
	if len(table.rows) == 0 {
		fmt.Fprintln(stderr, "capture: nothing to measure: no such backend or machine, or no compiler or source for it")
		return 2
	}
	if o.write != "" {
		if err := table.replace(o.write); err != nil {
			fmt.Fprintf(stderr, "capture: %v\n", err)
			return 3
		}
	} else {
		fmt.Fprint(stdout, table.markdown())
	}
	if short := table.short(); len(short) > 0 {
		fmt.Fprintf(stderr, "capture: %d cells short of their target:\n\t%s\n", len(short), strings.Join(short, "\n\t"))
		return 1
	}
	return 0
}

func chosen(list, name string) bool {
	return list == "" || slices.Contains(strings.Split(list, ","), name)
}

// task is a job, and the cell of the table to which its counts are added.
type task struct {
	job  job
	cell *count
}

// measure runs all jobs that are chosen and can be run here.
func measure(o options, stderr io.Writer) (*table, error) {
	t := &table{columns: levels}
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return nil, err
	}
	var tasks []task
	skipped := map[string]bool{}
	for _, b := range backends {
		for _, name := range b.machines {
			m := machines[slices.IndexFunc(machines, func(m machine) bool { return m.name == name })]
			if !chosen(o.backend, b.name) || !chosen(o.machine, m.name) {
				continue
			}
			for _, compiler := range []string{"gcc", "clang"} {
				if !chosen(o.compiler, compiler) {
					continue
				}
				if tool := m.missing(compiler == "clang"); tool != "" {
					if !skipped[tool] {
						fmt.Fprintf(stderr, "capture: %s is not installed: skipped\n", tool)
					}
					skipped[tool] = true
					continue
				}
				r := &row{backend: b, machine: m.name, compiler: compiler}
				t.rows = append(t.rows, r)
				tasks = append(tasks, o.tasks(r, m, dir)...)
			}
		}
	}
	var mu sync.Mutex // of cells and stderr
	err = each(o.jobs, tasks, func(k task) error {
		c, err := k.job.run(o.keep)
		mu.Lock()
		defer mu.Unlock()
		if o.verbose && (err != nil || c.fatal != "" || c.worst != "" || c.differing > 0) {
			c.report(stderr, k.job)
		}
		k.cell.add(c)
		return err
	})
	return t, err
}

// tasks adds the cells of a row, and returns the jobs that fill those of the chosen levels.
func (o options) tasks(r *row, m machine, dir string) (list []task) {
	clang := r.compiler == "clang"
	for n, level := range levels {
		cell := &count{}
		r.cells = append(r.cells, cell)
		if !chosen(o.level, level) {
			continue
		}
		for s := range o.seeds {
			p := program{seed: uint64(o.seed + s), n: 40, runs: 60, ids: (s+n)%2 == 1}
			j := job{machine: m, backend: r.backend, clang: clang, level: level, program: p, dir: dir}
			j.flags = append(m.variant(s+n, clang), f(o.extra)...)
			list = append(list, task{j, cell})
		}
	}
	return list
}

// each runs the tasks, n at a time, and returns the errors of those that failed: the others
// are measured all the same.
func each[T any](n int, tasks []T, run func(T) error) error {
	var mu sync.Mutex
	var group sync.WaitGroup
	var failures []error
	queue := make(chan T)
	for range n {
		group.Go(func() {
			for k := range queue {
				if err := run(k); err != nil {
					mu.Lock()
					failures = append(failures, err)
					mu.Unlock()
				}
			}
		})
	}
	for _, k := range tasks {
		queue <- k
	}
	close(queue)
	group.Wait()
	return errors.Join(failures...)
}

// report prints where a backend fell short.
func (c *count) report(w io.Writer, job any) {
	fmt.Fprintf(w, "%v: recall %.2f false %.2f differing %d\n\t%s\n\ttrue    %s\n", job, c.recall(), c.falsity(), c.differing, c.fatal, c.worst)
}
