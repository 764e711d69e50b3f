package process

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
	"github.com/lwsbt/lwsbt/internal/printable"
	"github.com/lwsbt/lwsbt/symbol"
)

// full makes the slow tests run at full length.
var full = cmdtest.Full()

// open returns a process without files.
func open(t testing.TB) *Process {
	t.Helper()
	p, err := New(symbol.Config{NoFiles: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// moduleAt returns the module that a process has at an address, and the module's own address
// there.
func moduleAt(p *Process, addr uint64) (symbol.Module, uint64) {
	l := p.Locate(addr).Location
	if l == nil || l.Module == nil {
		return symbol.Module{}, 0
	}
	return *l.Module, l.Own
}

// The address X belongs to B, then to no module, then to D. B is loaded again at another
// address, and its own addresses are unchanged.
func TestModulesComeAndGo(t *testing.T) {
	const x, y = 0x7f0000201234, 0x7f0000901234
	p := open(t)
	step := func(markup, wantX string, ownX uint64, wantY string, ownY uint64) {
		t.Helper()
		for _, line := range strings.Split(markup, "\n") {
			if _, err := p.Markup([]byte(line)); err != nil {
				t.Fatal(err)
			}
		}
		if m, own := moduleAt(p, x); m.Name != wantX || own != ownX {
			t.Errorf("after %q: X is %#x of %q, want %#x of %q", markup, own, m.Name, ownX, wantX)
		}
		if m, own := moduleAt(p, y); m.Name != wantY || own != ownY {
			t.Errorf("after %q: Y is %#x of %q, want %#x of %q", markup, own, m.Name, ownY, wantY)
		}
	}
	step("nothing told yet", "", 0, "", 0)
	if p.Mapped() {
		t.Error("a map before one was told")
	}
	step(`[1.0] {{{reset}}}
[1.0] {{{module:0:A:elf:aa}}}{{{mmap:0x7f0000100000:0x100000:load:0:rx:0x0}}}
[1.0] {{{module:1:B:elf:BB01}}}
[1.0] {{{mmap:0x7f0000200000:0x100000:load:1:r-x:0x40000}}} trailing text`, "B", 0x41234, "", 0)
	if m, _ := moduleAt(p, x); m.BuildID != "bb01" {
		t.Errorf("build-id of B is %q, want bb01", m.BuildID)
	}
	step(`{{{reset}}}
{{{module:0:A:elf:aa}}}{{{mmap:0x7f0000100000:0x100000:load:0:rx:0x0}}}`, "", 0, "", 0)
	step(`{{{module:2:D:elf:dd}}}{{{mmap:0x7f0000200000:0x80000:load:2:rx:0x1000}}}`, "D", 0x2234, "", 0)
	step(`{{{module:3:B:elf:bb01}}}{{{mmap:0x7f0000900000:0x100000:load:3:rx:0x40000}}}`, "D", 0x2234, "B", 0x41234)
	step(`{{{mmap:0x7f0000201000:0x1000:load:3:rx:0x50000}}}`, "B", 0x50234, "B", 0x41234)
	if m, _ := moduleAt(p, 0x7f0000200fff); m.Name != "D" {
		t.Error("what is before the new mapping is no longer D's")
	}
	if m, _ := moduleAt(p, 0x7f0000202000); m.Name != "D" || m.Offset != 0x3000 {
		t.Errorf("what is after the new mapping: %+v, want D from 0x3000", m)
	}
}

func TestMarkupErrors(t *testing.T) {
	for line, want := range map[string]string{
		"{{{module:0:a}}}":                                                       "expected module:ID:NAME:elf:BUILDID",
		"{{{module:zero:a:elf:00}}}":                                             "expected a number",
		"{{{mmap:0x1000:0x1000:load:7:rx:0}}}":                                   "module 7 was not introduced",
		"{{{mmap:0x1000:0x1000:load:0}}}":                                        "expected mmap:ADDR",
		"{{{mmap:0x1000:lots:load:0:rx:0}}}":                                     `"lots": expected a number`,
		"{{{module:0:a:elf:00}}}{{{mmap:-1:1:load:0:rx:0}}}":                     `"-1": expected a number`,
		"{{{module:0:a:elf:00}}}{{{mmap:0xffffffffffffff00:0x200:load:0:rx:0}}}": "pass the end of memory",
	} {
		p := open(t)
		if _, err := p.Markup([]byte(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", line, err, want)
		}
	}
	for _, line := range []string{"", "{{{", "{{{reset", "}}}", "{{{pc:0x1234}}}", "{{{bt:0:0x1234}}}", "{{{}}}", "{ {{{ }"} {
		p := open(t)
		if _, err := p.Markup([]byte(line)); err != nil {
			t.Errorf("%q: %v", line, err)
		}
		if p.Mapped() {
			t.Errorf("%q tells of a map", line)
		}
	}
}

// wrapped are the errors that were joined.
func markup(p *Process, text string) error {
	_, err := p.Markup([]byte(text))
	return err
}

func wrapped(err error) []error {
	if list, ok := err.(interface{ Unwrap() []error }); ok {
		return list.Unwrap()
	}
	return nil
}

// Reset is the zero value: a log that says no more than that something began does
// not keep bases from being used.
func TestResetIsTheZeroValue(t *testing.T) {
	p := open(t)
	if _, err := p.Markup([]byte("{{{reset}}}")); err != nil || p.Mapped() {
		t.Errorf("after a reset: mapped %v, %v, want no map", p.Mapped(), err)
	}
	p.Map([]symbol.Mapping{{Start: 0x1000, End: 0x2000}})
	if !p.Mapped() {
		t.Error("no map after Map")
	}
	p.Reset()
	if p.Mapped() {
		t.Error("a map after Reset")
	}
}

// Logs whose maps grow, come out of order or begin anew all the time take time in
// proportion to their length, and mappings have a limit.
func TestMapsInLinearTime(t *testing.T) {
	const module = "{{{module:0:a:elf:aa}}}\n"
	rng := rand.New(rand.NewPCG(9, 2026))
	for _, c := range []struct {
		name  string
		lines int
		line  func(i int) string
		fails bool
	}{
		{"mappings with a record after each", 20_000, func(i int) string {
			return fmt.Sprintf("{{{mmap:%#x:0x1000:load:0:rx:0}}}", 0x1000_0000+i<<12)
		}, false},
		{"mappings out of order", 60_000, func(i int) string {
			return fmt.Sprintf("{{{mmap:%#x:0x1000:load:0:rx:0}}}", rng.Uint64N(1<<36)<<12)
		}, false},
		{"one mapping over and over", 100_000, func(int) string { return "{{{mmap:0x1000:0x1000:load:0:rx:0}}}" }, false},
		{"a reset each time", 100_000, func(int) string {
			return "{{{reset}}}" + module + "{{{mmap:0x1000:0x1000:load:0:rx:0}}}"
		}, false},
		{"more mappings than a process has", 150_000, func(i int) string {
			return fmt.Sprintf("{{{mmap:%#x:0x800:load:0:rx:0}}}", 0x1000_0000+i<<12)
		}, true},
	} {
		p := open(t)
		failed := 0
		write := func(text string) {
			for _, err := range wrapped(markup(p, text)) {
				if failed++; !strings.Contains(err.Error(), "65,536") {
					t.Errorf("%s: %v", c.name, err)
				}
			}
		}
		write(module)
		if !full && !c.fails {
			c.lines /= 4
		}
		start := cmdtest.ProcessorTime()
		var tenth time.Duration // for the first of ten parts
		for i := range c.lines {
			if i == c.lines/10 {
				tenth = cmdtest.ProcessorTime() - start
			}
			write(c.line(i) + "\n")
			p.Locate(uint64(i))
		}
		took := cmdtest.ProcessorTime() - start
		t.Logf("%s: %d lines in %v, %d refused", c.name, c.lines, took, failed)
		// On a slow machine, the first part is slow as well; without proportion, it takes a hundredth.
		limit := max(50*tenth, 2*time.Second+time.Duration(c.lines)*100*time.Microsecond)
		if took > limit && !testing.Short() { // with a race detector, which is run -short, time says nothing
			t.Errorf("%s: %v for %d lines, expected at most %v", c.name, took, c.lines, limit)
		}
		if (failed > 0) != c.fails {
			t.Errorf("%s: %d elements refused", c.name, failed)
		}
	}
}

// Elements come in pieces, as a log is read.
func TestMarkupInPieces(t *testing.T) {
	const log = "x {{{reset}}} {{{module:0:a:elf:aa}}}\n{{ {{{mmap:0x1000:0x2000:load:0:rx:0}}} y {{{mmap:0x9000:\n0x1000:load:0:rx:0}}}\n{{{mmap:zz:0:load:0:rx:0}}}\n"
	for size := 1; size < len(log); size++ {
		p := open(t)
		bad := 0
		for piece := range slices.Chunk([]byte(log), size) {
			bad += len(wrapped(markup(p, string(piece))))
		}
		at, _ := moduleAt(p, 0x1000)
		not, _ := moduleAt(p, 0x9000)
		if len(p.Executable()) != 1 || at.Name != "a" || at.End != 0x3000 || not.Name != "" || bad != 1 {
			t.Errorf("in pieces of %d bytes: %+v and %+v, %d bad, want the mapping at 0x1000 alone", size, at, not, bad)
		}
	}
}

// Mappings without a byte are none.
func TestSetOfEmptyMappings(t *testing.T) {
	p := open(t)
	p.Map([]symbol.Mapping{{Start: 0x1000, End: 0x1000}})
	if p.Mapped() || p.MapWord() != 0 {
		t.Errorf("mapped %v, %d bits", p.Mapped(), p.MapWord())
	}
}

// Any text as a log with markup, in one write and in pieces.
func FuzzMarkup(f *testing.F) {
	f.Add([]byte("{{{reset}}}\n{{{module:0:a:elf:aa}}}{{{mmap:0x1000:0x1000:load:0:rx:0}}} x\n"), 3)
	f.Add([]byte("{{{module:1:../../etc/x\x1b[m:elf:zz}}}\n{{{mmap:0xfffffffffffff000:0x1000:load:0:rx:0}}}"), 1)
	f.Fuzz(func(t *testing.T, log []byte, size int) {
		size = 1 + (size%100+100)%100
		whole, pieces := open(t), open(t)
		for _, err := range wrapped(markup(whole, string(log))) {
			if s := err.Error(); printable.Text(s) != s {
				t.Errorf("not safe to print: %q", s)
			}
		}
		for part := range slices.Chunk(log, size) {
			pieces.Markup(part)
		}
		if x, y := whole.Executable(), pieces.Executable(); !slices.EqualFunc(x, y, func(a, b symbol.Mapping) bool {
			return a.Start == b.Start && a.End == b.End && *a.Module == *b.Module
		}) {
			t.Errorf("in pieces of %d: %+v, want %+v", size, y, x)
		}
		if whole.Mapped() != pieces.Mapped() || whole.MapWord() != pieces.MapWord() {
			t.Errorf("in pieces of %d: mapped %v, %d bits; whole: %v, %d", size, pieces.Mapped(), pieces.MapWord(), whole.Mapped(), whole.MapWord())
		}
		for _, number := range bytes.FieldsFunc(log, func(r rune) bool { return strings.ContainsRune(" :{}\n", r) }) {
			n, _ := markupNumber(string(number))
			for _, addr := range []uint64{n - 1, n, uint64(len(number))} {
				x, ownX := moduleAt(whole, addr)
				if y, ownY := moduleAt(pieces, addr); x != y || ownX != ownY {
					t.Errorf("in pieces of %d: %#x is %#x of %+v, want %#x of %+v", size, addr, ownY, y, ownX, x)
				}
			}
		}
	})
}
