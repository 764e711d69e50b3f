package dwarf

import (
	"bufio"
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// Real programs: commands of Go, DWARF 5 of a compiler that inlines much, and the debug
// files of the C library, most of which share units by dwz.
const goCommands, libraries = 10, 10

// programs returns the paths of real programs with debug information. Without
// LWSBT_FULL, it returns one of each kind.
func programs(t *testing.T) (list []string) {
	t.Helper()
	commands := strings.Fields("cmd/gofmt cmd/vet cmd/asm cmd/link cmd/cgo cmd/cover cmd/nm cmd/objdump cmd/pack cmd/addr2line")
	if len(commands) != goCommands {
		t.Fatalf("%d commands, want %d", len(commands), goCommands)
	}
	most := libraries
	if !cmdtest.Full() {
		commands, most = commands[:1], 1
	}
	dir := t.TempDir() + "/"
	build := exec.Command("go", append([]string{"build", "-o", dir}, commands...)...)
	build.Env = append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, c := range commands {
		list = append(list, dir+path.Base(c))
	}
	debug, _ := filepath.Glob("/usr/lib/debug/.build-id/*/*.debug")
	size := func(path string) int64 {
		info, err := os.Stat(path)
		if err != nil {
			return 0
		}
		return info.Size()
	}
	slices.SortFunc(debug, func(a, b string) int { return int(size(b) - size(a)) })
	if len(debug) < most {
		t.Logf("%d debug files in /usr/lib/debug, want %d: install libc6-dbg", len(debug), most)
	}
	debug = debug[:min(len(debug), libraries)]
	if !cmdtest.Full() { // a small one
		debug = debug[max(0, len(debug)-1):]
	}
	return append(list, debug...)
}

// program is the debug information of a file, by this package and for others.
type program struct {
	path   string
	elf    *elf.File
	data   *Data
	loaded []elf.ProgHeader
}

func openProgram(t testing.TB, path string) *program {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	p := &program{path: path, elf: f}
	for _, s := range f.Progs {
		if s.Type == elf.PT_LOAD {
			p.loaded = append(p.loaded, s.ProgHeader)
		}
	}
	section := func(name string) []byte {
		s := f.Section(name)
		if s == nil {
			return nil
		}
		b, err := s.Data()
		if err != nil {
			t.Fatalf("%s: %s: %v", path, name, err)
		}
		return b
	}
	var sections Sections
	for i := range sections {
		b := section(Section(i).String())
		sections[i] = Compressed(uint64(len(b)), func() (io.Reader, error) { return bytes.NewReader(b), nil })
	}
	p.data = New(sections,
		Options{BigEndian: f.Data == elf.ELFDATA2MSB, Loaded: p.isLoaded, Symbol: func(uint64) string { return "" }, Budget: NewBudget(1 << 30)})
	return p
}

func (p *program) isLoaded(low, high uint64) bool {
	return slices.ContainsFunc(p.loaded, func(s elf.ProgHeader) bool { return s.Vaddr <= low && high <= s.Vaddr+s.Memsz })
}

// frames is what this package has for an address, as "function file:line".
func (p *program) frames(t testing.TB, pc uint64) (out []string) {
	t.Helper()
	frames, err := p.data.Lookup(nil, pc)
	if err != nil {
		t.Fatalf("%s: %#x: %v", p.path, pc, err)
	}
	for _, f := range frames {
		out = append(out, fmt.Sprintf("%s %s:%d", f.Func, clean(f.File), f.Line))
	}
	return out
}

// clean is a path as path.Clean has it, "" if there is none.
func clean(file string) string {
	if file == "" {
		return ""
	}
	return path.Clean(file)
}

// The functions, inlined calls and lines of real programs are those that debug/dwarf has.
// The test logs what either takes, from opening the file on.
func TestRealProgramsAgainstDebugDwarf(t *testing.T) {
	list := programs(t)
	if p := os.Getenv("LWSBT_PROGRAM"); p != "" {
		list = []string{p}
	}
	for _, path := range list {
		t.Run(filepath.Base(path), func(t *testing.T) {
			pcs := codeAddrs(t, path)
			var got, want [][]string
			ours := measure(func() {
				p := openProgram(t, path)
				for _, pc := range pcs {
					got = append(got, p.frames(t, pc))
				}
			})
			theirs := measure(func() {
				std := openStdlib(t, openProgram(t, path))
				for _, pc := range pcs {
					want = append(want, std.lookup(t, pc))
				}
			})
			inlined, differ := 0, 0
			for i, pc := range pcs {
				if len(want[i]) > 1 {
					inlined++
				}
				if !slices.Equal(got[i], want[i]) {
					if differ++; differ <= 5 {
						t.Errorf("%#x: %q, debug/dwarf has %q", pc, got[i], want[i])
					}
				}
			}
			t.Logf("%d addresses, %d in inlined calls, %d differ; %s, debug/dwarf takes %s", len(pcs), inlined, differ, ours, theirs)
			if len(pcs) < 1000 {
				t.Errorf("only %d addresses were compared", len(pcs))
			}
		})
	}
}

// codeAddrs returns addresses all over the code of a program.
func codeAddrs(t *testing.T, path string) (pcs []uint64) {
	std := openStdlib(t, openProgram(t, path))
	rng := rand.New(rand.NewPCG(3, 2026))
	for range 10_000 {
		r := std.units[rng.IntN(len(std.units))]
		pcs = append(pcs, r.low+rng.Uint64N(r.high-r.low))
	}
	return pcs
}

// measure returns the time and memory that f takes.
func measure(f func()) string {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	f()
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	return fmt.Sprintf("%d ms and %d MB allocated", took.Milliseconds(), (after.TotalAlloc-before.TotalAlloc)>>20)
}

// The lines of real programs, with their discriminators, are those that llvm-dwarfdump
// prints.
func TestRealProgramsAgainstDwarfdump(t *testing.T) {
	dwarfdump, err := exec.LookPath("llvm-dwarfdump")
	if err != nil {
		t.Skip("llvm-dwarfdump is not installed")
	}
	for _, path := range programs(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			p := openProgram(t, path)
			std := openStdlib(t, p)
			rows := dumpedRows(t, dwarfdump, path)
			compared, differ := 0, 0
			step := max(1, len(rows)/50_000)
			for i := 0; i < len(rows); i += step {
				r := rows[i]
				if std.unitAt(r.addr) == nil {
					continue // padding between functions
				}
				compared++
				frames, err := p.data.Lookup(nil, r.addr)
				if err != nil {
					t.Fatal(err)
				}
				got := dumpedRow{addr: r.addr}
				if len(frames) > 0 {
					got.file, got.line, got.disc = clean(frames[0].File), frames[0].Line, frames[0].Discriminator
				}
				if got != r {
					if differ++; differ <= 5 {
						t.Errorf("%+v, llvm-dwarfdump has %+v", got, r)
					}
				}
			}
			t.Logf("%d rows, %d differ", compared, differ)
			if compared < 500 {
				t.Errorf("only %d rows were compared", compared)
			}
		})
	}
}

// dumpedRow is a row of a line table that covers at least one byte.
type dumpedRow struct {
	addr       uint64
	file       string
	line, disc int
}

// dumpedRows reads what llvm-dwarfdump --debug-line prints.
func dumpedRows(t *testing.T, dwarfdump, file string) (rows []dumpedRow) {
	t.Helper()
	cmd := exec.Command(dwarfdump, "--debug-line", file)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	var dirs, files []string
	var last dumpedRow
	pending := false
	quoted := func(line string) string {
		s, err := strconv.Unquote(line[strings.IndexByte(line, '"'):])
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		return s
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		switch {
		case strings.HasPrefix(line, "debug_line["):
			dirs, files, pending = nil, nil, false
		case strings.HasPrefix(line, "version: ") && line != "version: 5":
			t.Skipf("line tables of %s: file numbers there begin at 1", line)
		case strings.HasPrefix(line, "include_directories["):
			dirs = append(dirs, quoted(line))
		case strings.HasPrefix(line, "name: "):
			files = append(files, quoted(line))
		case strings.HasPrefix(line, "dir_index: "):
			n, _ := strconv.Atoi(strings.TrimPrefix(line, "dir_index: "))
			name := files[len(files)-1]
			if !path.IsAbs(name) {
				name = path.Join(dirs[n], name)
			}
			if !path.IsAbs(name) {
				name = path.Join(dirs[0], name)
			}
			files[len(files)-1] = clean(name)
		case strings.HasPrefix(line, "0x"):
			f := strings.Fields(line)
			row := dumpedRow{}
			row.addr, _ = strconv.ParseUint(f[0], 0, 64)
			row.line, _ = strconv.Atoi(f[1])
			n, _ := strconv.Atoi(f[3])
			row.disc, _ = strconv.Atoi(f[5])
			if n < len(files) {
				row.file = files[n]
			}
			if pending && row.addr > last.addr {
				rows = append(rows, last)
			}
			last, pending = row, !slices.Contains(f, "end_sequence")
		}
	}
	return rows
}
