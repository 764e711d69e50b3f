//go:build linux

// Package memtest measures the memory of the commands.
package memtest

import (
	"bufio"
	"debug/elf"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

var (
	update = flag.Bool("update", false, "measure a million and ten million call paths, and write its table in heap/FIGURES.md anew")
	sizes  = flag.String("paths", "", "measure `N,N` call paths instead")
	by     = flag.String("by", "", "run each command by this `COMMAND`, such as nice")
)

// document has the table of TestMemory, between these lines.
const (
	document   = "../../FIGURES.md"
	tableStart = "<!-- by go test ./heap/internal/memtest -run Memory -update -timeout 3h -->\n"
	tableEnd   = "<!-- end of memory -->\n"
)

// Limits of peak memory in bytes: of what keeps call paths, 4 GB at ten million of
// them, and of what does not. Of an address that has a name, its frames are kept, too.
// google/pprof's package keeps a location for each address, and events have a table of
// live blocks.
const (
	fixedMemory = 300e6
	perPath     = 800
	perLargest  = 1500  // of exports to pprof, and of events
	page        = 200e6 // the HTML page, 25,000 call paths at most, is put together in memory
	perNamed    = 450
	mostMemory  = 4e9
	mostEvents  = 5.5e9
	mostPprof   = 8.5e9
	streaming   = 64e6
	mostNamed   = 1_000_000 // call paths whose addresses are looked up
)

// logsOf are synthetic logs with so many distinct call paths of 12 frames each, all over
// the code of a program: as one dump, as two that have half their paths in common, and as
// events.
type logsOf struct{ one, two, events string }

func (l *logsOf) write(t *testing.T, dir string, low, size uint64, paths int) {
	t.Helper()
	create := func(name string) (*bufio.Writer, func()) {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		w := bufio.NewWriterSize(f, 1<<20)
		return w, func() {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			f.Close()
		}
	}
	*l = logsOf{filepath.Join(dir, "one.log"), filepath.Join(dir, "two.log"), filepath.Join(dir, "events.log")}
	one, closeOne := create("one.log")
	two, closeTwo := create("two.log")
	events, closeEvents := create("events.log")
	var line []byte
	each := func(from, to int, write func(i int, s *codec.Stack)) {
		s := codec.Stack{PCs: make([]uint64, 12)}
		for i := from; i < to; i++ {
			r := rand.New(rand.NewPCG(1, uint64(i))) // path i is the same in each log
			for k := range s.PCs {
				s.PCs[k] = low + 1 + r.Uint64N(size-1)
			}
			s.Size = r.Uint64N(5000)
			write(i, &s)
		}
	}
	var blob []byte
	record := func(to ...*bufio.Writer) func(int, *codec.Stack) {
		return func(_ int, s *codec.Stack) {
			var err error
			if blob, err = (codec.Encoder{}).AppendBlob(blob[:0], s, nil); err != nil {
				t.Fatal(err)
			}
			line = append(codec.AppendLine(line[:0], blob), '\n')
			for _, w := range to {
				w.Write(line)
			}
		}
	}
	fmt.Fprint(two, "~h#begin 1\n")
	each(0, paths*3/4, record(one, two))
	fmt.Fprint(two, "~h#end 1\n~h#begin 2\n")
	each(paths/4, paths*3/4, record(two))
	each(paths*3/4, paths, record(one, two))
	fmt.Fprint(two, "~h#end 2\n")
	var user codec.User
	each(0, paths, func(i int, s *codec.Stack) {
		user.Reset()
		user.Set(codec.TagEvent, codec.EventAllocated)
		user.Set(codec.TagAddress, 0x10000000+16*uint64(i))
		user.Set(codec.TagTime, uint64(i))
		var err error
		if blob, err = (codec.Encoder{}).AppendBlob(blob[:0], s, &user); err != nil {
			t.Fatal(err)
		}
		line = append(codec.AppendEventLine(line[:0], blob), '\n')
		events.Write(line)
	})
	closeOne()
	closeTwo()
	closeEvents()
}

// memoryCase is a command line that is measured; ELF, ONE, TWO and EVENTS stand for files.
type memoryCase struct {
	args  string
	limit func(paths int) float64
}

var memoryCases = func() (list []memoryCase) {
	add := func(limit func(int) float64, args ...string) {
		for _, a := range args {
			list = append(list, memoryCase{a, limit})
		}
	}
	add(func(int) float64 { return streaming }, "btdecode ONE", "btdecode -F jsonl ONE")
	add(func(int) float64 { return fixedMemory }, "btdecode --force -e ELF ONE")
	kept := func(fixed, each, most float64) func(int) float64 {
		return func(paths int) float64 { return min(most, fixed+each*float64(paths)) }
	}
	add(kept(fixedMemory+page, perPath, mostMemory), "btheap html TWO", "btheap html --force -e ELF TWO")
	add(kept(fixedMemory, perPath, mostMemory),
		"btstats ONE",
		"btheap top ONE", "btheap top --force -e ELF ONE", "btheap top --stacks ONE",
		"btheap diff TWO")
	add(kept(fixedMemory, perLargest, mostPprof), "btheap export -F pprof ONE", "btheap export -F folded ONE")
	add(kept(fixedMemory, perLargest, mostEvents), "btheap top EVENTS")
	return list
}()

// buildCommands builds the commands that are measured into dir.
func buildCommands(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"../../cmd/btdecode", "../../cmd/btheap", "../../../cmd/btstats"} {
		cmd := exec.Command("go", "build", "-o", dir, name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
		}
	}
}

// Every command stays within its memory limit for any input. The table in the documentation
// has the measurements of this test.
func TestMemory(t *testing.T) {
	all := cmdtest.Full() || *update
	if !all && *sizes == "" {
		t.Skip("LWSBT_FULL is not set")
	}
	list := *sizes
	switch {
	case *sizes == "" && *update:
		list = "1000000,10000000"
	case *sizes == "" && all:
		list = "20000"
	}
	dir := t.TempDir()
	buildCommands(t, dir)
	exe := filepath.Join(dir, "btdecode")
	e, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	code := e.Section(".text")
	e.Close()
	cells := make([]string, len(memoryCases))
	for _, text := range strings.Split(list, ",") {
		paths, err := strconv.Atoi(text)
		if err != nil || paths < 1 {
			t.Fatalf("-paths %s: expected numbers", list)
		}
		var l logsOf
		l.write(t, dir, code.Addr, code.Size, paths)
		names := strings.NewReplacer("ELF", exe, "ONE", l.one, "TWO", l.two, "EVENTS", l.events)
		for i, c := range memoryCases {
			if strings.Contains(c.args, "ELF") && (!all || paths > mostNamed) {
				cells[i] += " – | – |" // to look up so many addresses takes minutes
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", c.args, paths), func(t *testing.T) {
				peak, cpu := measure(t, strings.Fields(*by+" "+dir+"/"+names.Replace(c.args)))
				t.Logf("%6.0f MB, %v of processors", peak/1e6, cpu.Round(10*time.Millisecond))
				limit := c.limit(paths)
				if strings.Contains(c.args, "ELF") {
					limit += perNamed * min(12*float64(paths), float64(code.Size))
				}
				if peak > limit {
					t.Errorf("%.0f MB at the peak, expected at most %.0f", peak/1e6, limit/1e6)
				}
				cells[i] += fmt.Sprintf(" %.0f | %.0f |", peak/1e6, cpu.Seconds())
			})
		}
	}
	if !*update || t.Failed() || flag.Lookup("test.run").Value.String() != "Memory" {
		return
	}
	var table strings.Builder
	table.WriteString("| command |")
	for _, paths := range strings.Split(list, ",") {
		fmt.Fprintf(&table, " %s call paths: MB | CPU s |", paths)
	}
	table.WriteString("\n| --- |" + strings.Repeat(" ---: |", 2*(strings.Count(list, ",")+1)) + "\n")
	for i, c := range memoryCases {
		fmt.Fprintf(&table, "| `%s` |%s\n", c.args, cells[i])
	}
	doc, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(doc), tableStart)
	_, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok1 || !ok2 {
		t.Fatalf("%s: no table between its marks", document)
	}
	if err := os.WriteFile(document, []byte(before+tableStart+table.String()+tableEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// measure runs a command, its output thrown away, and returns its peak of resident
// memory in bytes and its processor time.
func measure(t *testing.T, args []string) (peak float64, cpu time.Duration) {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	cmd := exec.Command(args[0], args[1:]...)
	var errs strings.Builder
	cmd.Stdout, cmd.Stderr = null, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	used := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return float64(used.Maxrss) * 1024, time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
