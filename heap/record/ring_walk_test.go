//go:build linux

package record_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// Stacks end at main's callers however deep, up to the limit, which the record tells.
func TestRingDepth(t *testing.T) {
	library := ringLibrary(t, "gcc")
	program := ringProgram(t, "gcc", "testdata/ring.c", "-O1", "-fno-optimize-sibling-calls")
	for _, n := range []int{0, 30, 500, 1000, 1100, 5000} {
		r := newRing(t, ringConfig{})
		if _, err := runRing(t, library, r, nil, "", program, "recurse", strconv.Itoa(n)); err != nil {
			t.Fatal(err)
		}
		fns := ringFunctions(t, program)
		for _, rec := range r.end(t) {
			if rec.kind != ringAllocated || rec.size != ringBlockSize {
				continue
			}
			base := only(t, replayRing(t, r.recs)).bases[filepath.Base(program)]
			count := map[string]int{}
			for _, pc := range rec.stack {
				count[fns.name(pc-base)]++
			}
			want, end := map[string]int{"block": 1, "churn": 1, "recurse": n + 1, "main": 1, "_start": 1}, 0
			if n > 1000 {
				want, end = map[string]int{"block": 1, "churn": 1, "recurse": 1022}, 1
			}
			for f, k := range want {
				if count[f] != k {
					t.Errorf("%d deep: %d frames of %s, want %d", n, count[f], f, k)
				}
			}
			if rec.end != end {
				t.Errorf("%d deep: end %d, want %d", n, rec.end, end)
			}
		}
	}
}

// Stacks are those of the compiler's unwinder, on programs of others: all of its frames, and beyond
// those only where it has no table.
func TestRingUnwinder(t *testing.T) {
	cmdtest.Long(t)
	library := ringLibrary(t, "gcc", "-DLWSBT_CHECK")
	programs := [][]string{
		{"python3", "-c", "import json; print(len(json.dumps([[str(i)] for i in range(20000)])))"},
		{"bash", "-c", "for i in {1..500}; do x+=$i; done; echo ${#x}"},
	}
	if cmdtest.Full() {
		programs = append(programs, [][]string{
			{"git", "log", "--stat", "-3"},
			{"openssl", "version", "-a"},
			{"node", "-e", "let a=[];for(let i=0;i<100000;i++)a.push({x:i,y:String(i)}); console.log(JSON.stringify(a).length)"},
			{"java", "-version"},
			{"sqlite3", ":memory:", "create table t(a,b); with recursive c(x) as (select 1 union all select x+1 from c where x<20000) insert into t select x, hex(x) from c; select count(*) from t group by b%7"},
			{"gdb", "-batch", "-ex", "info functions walk", library},
			{"gcc", "-O2", "-c", "-o", "/dev/null", "-I../../device/include", "../../device/src/capture_arm.c"},
		}...)
	}
	checked := 0
	for _, args := range programs {
		if _, err := exec.LookPath(args[0]); err != nil {
			continue
		}
		r := newRing(t, ringConfig{clock: 1})
		out, err := runRing(t, library, r, nil, "", args...)
		if err != nil {
			t.Errorf("%s: %v", args[0], err)
		}
		r.end(t)
		for line := range strings.Lines(out) {
			var n, differed, less, more int
			if _, err := fmt.Sscanf(line, "stacks: checked=%d differed=%d less=%d more=%d", &n, &differed, &less, &more); err == nil {
				checked += n
				if differed+less != 0 {
					t.Errorf("%s: %s%.2000s", args[0], line, out[max(0, strings.Index(out, "stack differs")):])
				}
				t.Logf("%s: %s", args[0], line)
			}
		}
	}
	if checked < 1000 {
		t.Errorf("%d stacks were checked", checked)
	}
}

// Other machines and C libraries, some under qemu: blocks, order, and the functions on
// their stacks. The modes after the bar only if LWSBT_FULL is all.
func TestRingMachines(t *testing.T) {
	for _, m := range []struct{ name, cc, run, flags, modes string }{
		{"clang", "clang", "", "", "churn threads small getattr fork execve"},
		{"musl", "musl-gcc", "", "-Wl,--eh-frame-hdr -fasynchronous-unwind-tables", "churn threads small getattr fork execve"},
		{"i686", "i686-linux-gnu-gcc", "/usr/i686-linux-gnu/lib/ld-linux.so.2 --library-path /usr/i686-linux-gnu/lib", "",
			"churn threads small getattr fork execve"},
		{"aarch64", "aarch64-linux-gnu-gcc", "qemu-aarch64 -L /usr/aarch64-linux-gnu", "", "churn threads fork | small getattr"},
		{"riscv64", "riscv64-linux-gnu-gcc", "qemu-riscv64 -L /usr/riscv64-linux-gnu", "-fasynchronous-unwind-tables",
			"churn | threads small getattr fork"},
		{"arm", "arm-linux-gnueabihf-gcc", "qemu-arm -L /usr/arm-linux-gnueabihf", "", "churn | threads small getattr fork"},
		{"mipsel", "mipsel-linux-gnu-gcc", "qemu-mipsel -L /usr/mipsel-linux-gnu", "", "churn threads | small getattr fork"},
	} {
		some, others, _ := strings.Cut(m.modes, "|")
		if cmdtest.All() {
			some += others
		}
		for _, mode := range strings.Fields(some) {
			t.Run(m.name+"/"+mode, func(t *testing.T) {
				cmdtest.Long(t)
				if m.name == "i686" { // under qemu-i386 the test does not end
					cmdtest.NeedToRun(t, m.cc)
				}
				ringMachine(t, m.cc, strings.Fields(m.run), strings.Fields(m.flags), mode)
			})
		}
	}
}

func ringMachine(t *testing.T, cc string, args, flags []string, mode string) {
	library := ringLibrary(t, cc)
	program := ringProgram(t, cc, "testdata/ring.c", append(flags, "-O1", "-fno-optimize-sibling-calls")...)
	if len(args) > 0 {
		cmdtest.Need(t, args[0])
	}
	if len(args) > 0 && strings.HasPrefix(args[0], "qemu") { // the library is not to be loaded into the emulator
		args = slices.Concat(args, []string{"-E", "LD_PRELOAD=" + library})
		library = ""
	}
	r := newRing(t, ringConfig{children: 1})
	amount := "50"
	if mode == "getattr" { // 8 threads each time, whose stacks are read from code under the emulator
		amount = "10"
	}
	args = append(args, program, mode, amount)
	if mode == "fork" && library == "" {
		// qemu answers MADV_WIPEONFORK with success and does not do it. Without it the recorder
		// knows a child only from the C library.
		args = append(args, "library")
	}
	out, err := runRing(t, library, r, nil, "", args...)
	if err != nil {
		t.Fatal(out, err)
	}
	recs := r.end(t)
	all := replayRing(t, recs)
	if n := ringCounted(recs); n != ringSum(t, out) || r.lost() != 0 {
		t.Errorf("%d blocks, want %s, %d lost", n, out, r.lost())
	}
	fns := ringFunctions(t, program)
	for _, rec := range recs {
		if rec.kind != ringAllocated || rec.size != ringBlockSize {
			continue
		}
		base, ok := all[rec.image].bases[filepath.Base(program)]
		if !ok {
			t.Fatalf("the program is not told: %v", all[rec.image].bases)
		}
		var names []string
		for _, pc := range rec.stack {
			names = append(names, fns.name(pc-base))
		}
		if !strings.HasPrefix(strings.Join(names, " ")+" ", "block churn ") {
			t.Fatalf("stack %q of %x", names, rec.stack)
		}
	}
}

// ringFunctions is the functions of a program by address.
type ringSymbols []struct {
	at, size uint64
	name     string
}

func ringFunctions(t testing.TB, path string) (list ringSymbols) {
	t.Helper()
	out, err := exec.Command("nm", "-S", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) != 4 {
			continue
		}
		at, _ := strconv.ParseUint(f[0], 16, 64)
		size, _ := strconv.ParseUint(f[1], 16, 64)
		list = append(list, struct {
			at, size uint64
			name     string
		}{at, size, f[3]})
	}
	return list
}

func (s ringSymbols) name(pc uint64) string {
	i := slices.IndexFunc(s, func(f struct {
		at, size uint64
		name     string
	}) bool {
		return pc > f.at && pc <= f.at+f.size
	})
	if i < 0 {
		return ""
	}
	return s[i].name
}
