package truth

import (
	"bufio"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/heap/core/unwind"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// moments lists programs of the distribution, with arguments that keep them busy. They have
// .eh_frame, but neither symbols nor debug information.
var moments = []struct {
	name string
	args []string
}{
	{"perl", []string{"-e", `my %h; for (1..3e6) { $h{$_ % 997} .= chr(65 + $_ % 26); $h{$_ % 997} =~ s/A.*B/x/; @l = sort { $a <=> $b } map { $_ * 7 % 31 } 1..20 }`}},
	{"python3", []string{"-c", "[(json.loads(json.dumps({'a': [i, str(i)] * 9})), re.sub('[0-9]+', lambda m: m.group() + 'x', 'a1b22c333' * 9), sorted(range(50), key=lambda x: -x)) for re, json in [(__import__('re'), __import__('json'))] for i in range(10**6)]"}},
	{"bash", []string{"-c", `for ((i = 0; i < 1000000; i++)); do x=${i//1/22}; y=$((i * 3)); [[ $x == *2* ]] && z+=a; z=${z: -9}; done`}},
	{"xz", []string{"-9", "-c", "-T1", "{file}"}},
	{"bzip2", []string{"-9", "-c", "{file}"}},
	{"sort", []string{"--parallel=1", "-r", "{file}"}},
	{"mawk", []string{"BEGIN { for (i = 0; i < 1e7; i++) { x[i % 99] = x[i % 97] i; gsub(/1/, \"2\", x[i % 99]); x[i % 99] = substr(x[i % 99], 1, 50) } }"}},
	{"git", []string{"-c", "core.abbrev=40", "hash-object", "--no-filters", "{file}"}},
	{"sqlite3", []string{":memory:", "with recursive c(x) as (select 1 union all select x+1 from c where x<5000000) select sum(x*3%7), count(distinct x%1009), max(printf('%d-%s', x, hex(x))) from c group by x%13 order by 1;"}},
}

// bare holds copies of files without .eh_frame.
type bare struct {
	dir     string
	objects map[string]*unwind.Object
}

func (b *bare) open(t testing.TB, path string) *unwind.Object {
	if o, ok := b.objects[path]; ok {
		return o
	}
	out := filepath.Join(b.dir, strconv.Itoa(len(b.objects))+"-"+filepath.Base(path))
	if text, err := exec.Command("objcopy", "--strip-all", "--remove-section", ".eh_frame", "--remove-section", ".eh_frame_hdr", path, out).CombinedOutput(); err != nil {
		t.Fatalf("objcopy %s: %v: %s", path, err, text)
	}
	e, err := elf.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	if e.Section(".eh_frame") != nil {
		t.Fatalf("%s still has .eh_frame", out)
	}
	e.Close()
	o, err := unwind.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	b.objects[path] = o
	return o
}

// modules returns the modules in the text of /proc/PID/maps.
func (b *bare) modules(t testing.TB, maps string) (list []*unwind.Module) {
	seen := map[string]bool{}
	sc := bufio.NewScanner(strings.NewReader(maps))
	for sc.Scan() {
		f := strings.Fields(sc.Text())
		if len(f) < 6 || !strings.HasPrefix(f[5], "/") || seen[f[5]] {
			continue
		}
		low, _, _ := strings.Cut(f[0], "-")
		addr, err1 := strconv.ParseUint(low, 16, 64)
		offset, err2 := strconv.ParseUint(f[2], 16, 64)
		if err1 != nil || err2 != nil || offset != 0 {
			continue
		}
		seen[f[5]] = true
		if head := make([]byte, 4); !isELF(f[5], head) {
			continue
		}
		o := b.open(t, f[5])
		list = append(list, &unwind.Module{Object: o, Bias: addr - o.Low()&^0xfff})
	}
	return list
}

func isELF(path string, head []byte) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	n, _ := f.Read(head)
	return n == len(head) && string(head) == elf.ELFMAG
}

// TestMoments stops programs of the distribution at random moments. gdb uses their unwind
// tables; package unwind gets copies without tables. LWSBT_I386_ROOT names a directory tree
// with programs for i386.
func TestMoments(t *testing.T) {
	cmdtest.Need(t, "gdb", "objcopy")
	var table strings.Builder
	table.WriteString("| machine | programs | stops | frames | found | false |\n| --- | --: | --: | --: | --: | --: |\n")
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	var data []byte
	for i := range 1 << 19 {
		data = binary.LittleEndian.AppendUint32(data, uint32(i*i)*2654435761>>7)
		data = append(data, fmt.Sprintf("%d\n", i)...)
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
	var total [2]Score
	for k, m := range Machines()[:2] {
		programs := 0
		root := ""
		if k == 1 {
			if root = os.Getenv("LWSBT_I386_ROOT"); root == "" {
				continue
			}
		}
		b := &bare{dir: dir, objects: map[string]*unwind.Object{}}
		for i, p := range moments {
			if !cmdtest.All() && (i > 0 || k > 0) || !strings.Contains(p.name, os.Getenv("LWSBT_TRUTH_ONLY")) {
				continue
			}
			path, err := findProgram(root, p.name)
			if err != nil {
				t.Logf("%s for %s is not installed", p.name, m.Name)
				continue
			}
			t.Run(p.name+"-"+m.Name, func(t *testing.T) {
				o := Options{Dir: dir, Samples: 200, Seconds: 75, Moments: true, Moment: 0.03, Seed: i}
				if !cmdtest.All() {
					o.Samples, o.Seconds = 12, 15
				}
				if root != "" {
					o.Libs = root + "/lib/i386-linux-gnu:" + root + "/usr/lib/i386-linux-gnu"
				}
				for _, a := range p.args {
					o.Args = append(o.Args, strings.ReplaceAll(a, "{file}", file))
				}
				if d := os.Getenv("LWSBT_TRUTH_DIR"); d != "" {
					o.Keep = filepath.Join(d, p.name+"-"+m.Name+".moments")
				}
				samples, err := readSamples(o.Keep)
				if (err != nil || len(samples) == 0) && kept() {
					t.Skip("not among the kept samples")
				}
				if err != nil || len(samples) == 0 {
					if samples, err = take(&m, path, o, o.Samples/2); err != nil {
						t.Fatal(err)
					}
				}
				s := &Score{}
				shown, cut := 0, 0
				for i := range samples {
					x := &samples[i]
					truth, toMain := x.Truth()
					u := &unwind.Unwinder{Memory: x, Modules: b.modules(t, x.Maps), NoTables: true}
					if kernel := x.Kernel(); kernel != nil {
						u.Modules = append(u.Modules, kernel)
					}
					if !bottom(x, truth, u.Modules) {
						cut++ // gdb did not reach the bottom: there is no reference
						continue
					}
					for j := range truth { // after the loader's first function, gdb continues into data
						if j > 0 && !u.Holds(truth[j]) {
							truth = truth[:j]
							break
						}
					}
					frames := u.Walk(m.Machine, m.Class, m.Order, x.Registers())
					if !s.Add(truth, toMain, frames, 0) && os.Getenv("TRUTH_SHOW") != "" && shown < 12 {
						shown++
						t.Logf("\n%s", compared(x, truth, frames, 0))
					}
				}
				t.Logf("%v; %d stops left out", s, cut)
				programs++
				if s.Samples < len(samples)*3/4 || len(samples) < o.Samples/5 {
					t.Errorf("%d stops, %d frames: too few", len(samples), s.Want)
				}
				total[k].add(s)
			})
		}
		if s := &total[k]; s.Samples > 0 {
			fmt.Fprintf(&table, "| %s | %d | %d | %d | %.1f %% | %.1f %% |\n", m.Name, programs, s.Samples, s.Want, s.Recall()*100, s.Wrongs()*100)
			check(t, m.Name, s, 0.90, 0.01)
		}
	}
	if *update {
		if err := replaceTable("../../../FIGURES.md", "moments", table.String()); err != nil {
			t.Fatal(err)
		}
	}
}

// bottom reports whether gdb reached the bottom of the stack.
func bottom(x *Sample, truth []uint64, modules []*unwind.Module) bool {
	for _, pc := range truth {
		if slices.ContainsFunc(modules, func(m *unwind.Module) bool { return m.AtEntry(pc - m.Bias) }) {
			return true
		}
	}
	for _, f := range x.Frames {
		switch f[1] {
		case "main", "_start", "start_thread", "clone", "clone3", "__clone", "__clone3":
			return true
		}
	}
	return false
}

// findProgram returns the path of a program of the distribution.
func findProgram(root, name string) (string, error) {
	if root == "" {
		root = "/"
	}
	for _, dir := range []string{"usr/bin", "bin"} {
		for _, n := range []string{name, name + ".11"} {
			if p := filepath.Join(root, dir, n); isELF(p, make([]byte, 4)) {
				return filepath.EvalSymlinks(p)
			}
		}
	}
	return "", os.ErrNotExist
}
