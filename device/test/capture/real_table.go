package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
)

// realLevels are those that real programs are compiled at.
var realLevels = f("-O0 -O2 -Os")

// realMachines returns those of a backend that real programs can be built for: they need a C
// library.
func (b backend) realMachines() []machine {
	var list []machine
	for _, name := range b.machines {
		m := machines[slices.IndexFunc(machines, func(m machine) bool { return m.name == name })]
		if !m.bare || m.newlib() {
			list = append(list, m)
		}
	}
	return list
}

// newlib reports whether newlib is the C library of the machine's programs.
func (m machine) newlib() bool { return m.bare && m.gcc[0] == "arm-none-eabi-gcc" }

// measureReal runs the real programs, compiled by gcc.
func measureReal(o options, stderr io.Writer) (*table, error) {
	t := &table{columns: realLevels}
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return nil, err
	}
	var programs []realProgram
	for _, p := range realPrograms {
		if !chosen(o.program, p.name) {
			continue
		}
		if _, missing := p.sources(); missing != "" {
			fmt.Fprintf(stderr, "capture: %s: skipped\n", missing)
			continue
		}
		programs = append(programs, p)
	}
	type task struct {
		job          realJob
		plain, table *count
	}
	var tasks []task
	var mu sync.Mutex // of cells and stderr
	for _, b := range backends {
		if b.trusts || b.report || b.table || len(programs) == 0 || !chosen(o.backend, b.name) {
			continue
		}
		for _, m := range b.realMachines() {
			if !chosen(o.machine, m.name) || !chosen(o.compiler, "gcc") {
				continue
			}
			if tool := m.missing(false); tool != "" {
				fmt.Fprintf(stderr, "capture: %s is not installed: skipped\n", tool)
				continue
			}
			plain := &row{backend: b, machine: m.name, compiler: "gcc"}
			with := &row{backend: b, machine: m.name, compiler: "gcc"}
			with.backend.table, with.backend.recall, with.backend.wrong = true, 99, 0
			if b.reads() {
				t.rows = append(t.rows, with)
			}
			t.rows = append(t.rows, plain)
			for _, level := range realLevels {
				k := task{plain: &count{}, table: &count{}}
				plain.cells, with.cells = append(plain.cells, k.plain), append(with.cells, k.table)
				for _, p := range programs {
					if chosen(o.level, level) {
						k.job = realJob{machine: m, backend: b, level: level, program: p, extra: f(o.extra), dir: dir}
						tasks = append(tasks, k)
					}
				}
			}
		}
	}
	err = each(o.jobs, tasks, func(k task) error {
		plain, table, err := k.job.run(o.keep)
		mu.Lock()
		defer mu.Unlock()
		for _, c := range []*count{&plain, &table} {
			if o.verbose && (c.fatal != "" || c.worst != "" || c.differing > 0) {
				c.report(stderr, k.job)
			}
		}
		k.plain.add(plain)
		k.table.add(table)
		return err
	})
	return t, err
}
