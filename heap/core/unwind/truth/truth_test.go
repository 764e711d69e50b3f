package truth

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/heap/core/unwind"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// score unwinds all samples using one file.
func score(t testing.TB, m *Machine, path string, samples []Sample, tables bool) *Score {
	o, err := unwind.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	s := &Score{}
	tag := uint64(0)
	if m.Machine == 40 {
		tag = 1
	}
	shown, modules := 0, []*unwind.Module{{Object: o}}
	for i := range samples {
		x := &samples[i]
		truth, toMain := x.Truth()
		if !toMain {
			continue // gdb did not reach main
		}
		if k := x.Kernel(); k != nil {
			modules = append(modules[:1], k)
		}
		if x.Stacks > 0 {
			s.Crossed++
		}
		u := &unwind.Unwinder{Memory: x, Modules: modules, NoTables: !tables}
		frames := u.Walk(m.Machine, m.Class, m.Order, x.Registers())
		if !s.Add(truth, toMain, frames, tag) && os.Getenv("TRUTH_SHOW") != "" && shown < 12 {
			shown++
			t.Logf("%s\n%s", path, compared(x, truth, frames, tag))
		}
	}
	return s
}

// compared returns two backtraces side by side.
func compared(x *Sample, truth []uint64, frames []unwind.Frame, tag uint64) string {
	var b strings.Builder
	for j := range max(len(truth), len(frames)) {
		if j < len(truth) {
			fmt.Fprintf(&b, "  %#10x %-16s", truth[j], x.Frames[j][1])
		} else {
			fmt.Fprintf(&b, "  %27s", "")
		}
		if j < len(frames) {
			mark := ""
			if j >= len(truth) || frames[j].PC&^tag != truth[j] {
				mark = " <--"
			}
			fmt.Fprintf(&b, "  %#10x %#x %v%s", frames[j].PC, frames[j].SP, frames[j].How, mark)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// kept reports whether to score only the samples in LWSBT_TRUTH_DIR.
func kept() bool { return os.Getenv("LWSBT_TRUTH_KEPT") != "" }

// stops returns samples of a program for a machine. If LWSBT_TRUTH_DIR is set, stops stores
// the samples there for later runs.
func stops(t testing.TB, m *Machine, opt string, n, seconds int) (Build, []Sample) {
	t.Helper()
	cmdtest.Need(t, m.CC, m.Strip, m.Qemu, debugger())
	dir, keep := t.TempDir(), ""
	if d := os.Getenv("LWSBT_TRUTH_DIR"); d != "" {
		dir = filepath.Join(d, m.Name+opt)
		keep = filepath.Join(dir, "samples")
		os.MkdirAll(dir, 0o755)
	}
	if list, err := readSamples(keep); err == nil && len(list) > 0 {
		return m.files(dir, opt), list
	}
	if kept() {
		t.Skip("not among the kept samples")
	}
	b, err := m.Compile(dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	least := n
	if cmdtest.All() {
		least = n / 2 // some places may never be reached
	}
	list, err := take(m, b.Full, Options{Dir: dir, Samples: n, Seconds: seconds, Seed: 1, Keep: keep}, least)
	if err != nil {
		t.Fatal(err)
	}
	return b, list
}

// take returns samples of a program. A slow machine takes fewer samples: if there are fewer
// than least, take tries again with four times the time, at most twice.
func take(m *Machine, path string, o Options, least int) (list []Sample, err error) {
	for range 3 {
		if list, err = m.Stops(path, o); err == nil && len(list) >= least {
			break
		}
		o.Seconds *= 4
	}
	return list, err
}

var levels = []string{"-O0", "-O1", "-O2", "-Os", "-O3"}

var update = flag.Bool("update", false, "write the tables of heap/FIGURES.md")

// TestMachines checks the accuracy stated in heap/FIGURES.md, on every machine: at all
// optimisation levels with LWSBT_FULL=all, at -O2 with LWSBT_FULL=1.
func TestMachines(t *testing.T) {
	cmdtest.Long(t)
	var b strings.Builder
	b.WriteString("| machine | stops | frames | tables | symbols | stripped | false, at most |\n")
	b.WriteString("| --- | --: | --: | --: | --: | --: | --: |\n")
	for _, m := range Machines() {
		var all [3]Score // of all levels
		for _, opt := range levels {
			if !cmdtest.All() && opt != "-O2" || !strings.Contains(m.Name+opt, os.Getenv("LWSBT_TRUTH_ONLY")) {
				continue
			}
			t.Run(m.Name+opt, func(t *testing.T) {
				n, seconds := 25, 15
				if cmdtest.All() {
					n, seconds = 200, 28
				}
				files, samples := stops(t, &m, opt, n, seconds)
				tables := score(t, &m, files.Tables, samples, true)
				symbols, stripped := &Score{}, &Score{}
				if !m.Tables {
					symbols, stripped = score(t, &m, files.Symbols, samples, false), score(t, &m, files.Stripped, samples, false)
				}
				t.Logf("tables:   %v", tables)
				t.Logf("symbols:  %v", symbols)
				t.Logf("stripped: %v", stripped)
				for i, s := range []*Score{tables, symbols, stripped} {
					all[i].add(s)
				}
				if tables.Want < min(60, n) {
					t.Fatalf("%d frames of %d stops: too few to measure accuracy", tables.Want, tables.Samples)
				}
				least := 0.95
				if !m.RISC {
					least = 0.90
				}
				check(t, "tables", tables, 0.99, 0.01)
				if !m.Tables {
					check(t, "symbols", symbols, least, 0.01)
					check(t, "stripped", stripped, least, 0.01)
				}
			})
		}
		code := fmt.Sprintf("%.1f %% | %.1f %%", all[1].Recall()*100, all[2].Recall()*100)
		if m.Tables {
			code = "– | –"
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %.1f %% | %s | %.1f %% |\n", m.Name, all[0].Samples, all[0].Want, all[0].Recall()*100, code,
			max(all[0].Wrongs(), all[1].Wrongs(), all[2].Wrongs())*100)
	}
	if *update {
		if err := replaceTable("../../../FIGURES.md", "machines", b.String()); err != nil {
			t.Fatal(err)
		}
	}
}

// add adds the counts of another score.
func (s *Score) add(x *Score) {
	s.Samples += x.Samples
	s.Want += x.Want
	s.Found += x.Found
	s.False += x.False
	s.Frames += x.Frames
}

func check(t *testing.T, name string, s *Score, recall, wrong float64) {
	t.Helper()
	if s.Recall() < recall || s.Wrongs() > wrong {
		t.Errorf("%s: recall %.1f %%, false %.2f %%; want at least %.0f %%, at most %.0f %%",
			name, s.Recall()*100, s.Wrongs()*100, recall*100, wrong*100)
	}
}

// replaceTable replaces the text between two comments of a document.
func replaceTable(path, name, text string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->\n"
	before, rest, ok := strings.Cut(string(b), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return fmt.Errorf("%s: no %s", path, begin)
	}
	return os.WriteFile(path, []byte(before+begin+text+end+after), 0o644)
}
