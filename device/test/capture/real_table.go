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

// realBackends are those that real programs are measured with; where they read a table,
// with it as well.
func realBackends() []backend {
	return slices.DeleteFunc(slices.Clone(backends), func(b backend) bool { return b.trusts || b.report || b.table })
}

// A realTask is a job, and the cells that its counts belong to.
type realTask struct {
	job          realJob
	plain, table *count
}

// addRows adds the rows of a backend on a machine, and returns what fills their cells.
func (t *table) addRows(b backend, m machine, programs []realProgram, o options, dir string) (tasks []realTask) {
	plain := &row{backend: b, machine: m.name, compiler: "gcc"}
	with := &row{backend: b, machine: m.name, compiler: "gcc"}
	with.backend.table, with.backend.recall, with.backend.wrong = true, 99, 0
	if b.reads() {
		t.rows = append(t.rows, with)
	}
	t.rows = append(t.rows, plain)
	for _, level := range t.columns {
		k := realTask{plain: &count{}, table: &count{}}
		plain.cells, with.cells = append(plain.cells, k.plain), append(with.cells, k.table)
		for _, p := range programs {
			k.job = realJob{machine: m, backend: b, level: level, program: p, extra: f(o.extra), dir: dir}
			tasks = append(tasks, k)
		}
	}
	return tasks
}

// chosenPrograms returns those of which there are sources.
func chosenPrograms(o options, stderr io.Writer) (programs []realProgram) {
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
	return programs
}

// measureReal runs the real programs, compiled by gcc.
func measureReal(o options, stderr io.Writer) (*table, error) {
	t := &table{columns: slices.DeleteFunc(slices.Clone(realLevels), func(l string) bool { return !chosen(o.level, l) })}
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return nil, err
	}
	programs := chosenPrograms(o, stderr)
	var tasks []realTask
	for _, b := range realBackends() {
		for _, m := range b.realMachines() {
			if len(programs) == 0 || !chosen(o.backend, b.name) || !chosen(o.machine, m.name) || !chosen(o.compiler, "gcc") {
				continue
			}
			if tool := m.missing(false); tool != "" {
				fmt.Fprintf(stderr, "capture: %s is not installed: skipped\n", tool)
				continue
			}
			tasks = append(tasks, t.addRows(b, m, programs, o, dir)...)
		}
	}
	var mu sync.Mutex // of cells and stderr
	err = each(o.jobs, tasks, func(k realTask) error {
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
