package capture

import (
	"path/filepath"
	"testing"

	"github.com/lwsbt/lwsbt/internal/figures"
)

// seeds is the number of programs of each cell of the table.
const seeds = 3

// With -update, all programs of the table of capture.md are measured, in an hour; TestBackends has a sample of them.
func TestAccuracy(t *testing.T) {
	if !figures.Update() {
		return
	}
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	all := &table{columns: levels}
	for _, b := range backends {
		for _, name := range b.machines {
			m := machineOf(name)
			for _, compiler := range []string{"gcc", "clang"} {
				if m.missing(compiler == "clang") != "" || b.report { // of scan, no cell is like another
					continue
				}
				r := &row{backend: b, machine: m.name, compiler: compiler}
				for n, level := range levels {
					c := count{}
					for s := range seeds {
						j := job{machine: m, backend: b, clang: compiler == "clang", level: level, dir: dir, flags: m.variant(s+n, compiler == "clang"),
							program: program{seed: uint64(1 + s), n: 40, runs: 60, ids: (s+n)%2 == 1}}
						one, err := j.run()
						if err != nil {
							t.Error(err)
						}
						c.add(one)
					}
					if c.fatal != "" || c.recall() < b.recall || c.falsity() > b.wrong || c.differing > 0 {
						t.Errorf("%v %s: %.2f %% found, %.2f %% false, of %g and %g; %d differing %s", r.line(nil), level, c.recall(), c.falsity(), b.recall, b.wrong, c.differing, c.fatal)
					}
					r.cells = append(r.cells, &c)
				}
				all.rows = append(all.rows, r)
			}
		}
	}
	figures.Check(t, "../../../docs/notes/capture.md", "table", all.markdown())
}
