package truth

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/image/unwind"
)

// score unwinds all samples with one file.
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
	shown := 0
	for i := range samples {
		x := &samples[i]
		truth, toMain := x.Truth()
		if !toMain {
			continue // gdb lost its way
		}
		u := &unwind.Unwinder{Memory: x, Modules: []*unwind.Module{{Object: o}}, NoTables: !tables}
		frames := u.Walk(m.Machine, m.Class, m.Order, x.Registers())
		if !s.Add(truth, toMain, frames, tag) && os.Getenv("TRUTH_SHOW") != "" && shown < 12 {
			shown++
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
			t.Logf("%s\n%s", path, b.String())
		}
	}
	return s
}

func TestTry(t *testing.T) {
	name := os.Getenv("TRUTH_TRY")
	if name == "" {
		t.Skip("TRUTH_TRY=machine,-O2")
	}
	for _, n := range strings.Split(name, " ") {
		mn, opt, _ := strings.Cut(n, ",")
		for _, m := range Machines() {
			if m.Name != mn {
				continue
			}
			dir := "/tmp/st/" + m.Name + opt
			os.MkdirAll(dir, 0o755)
			b, err := m.Compile(dir, opt, false)
			if err != nil {
				t.Fatal(err)
			}
			samples, err := m.Stops(b.Full, Options{Dir: dir, Samples: 300, Seconds: 40, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s symbols:  %v", n, score(t, &m, b.Symbols, samples, false))
			t.Logf("%s stripped: %v", n, score(t, &m, b.Stripped, samples, false))
			t.Logf("%s debug:    %v", n, score(t, &m, b.Full, samples, true))
		}
	}
}
