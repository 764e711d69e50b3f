//go:build linux

package device

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

const ringBlockSize = 5003 // ring.c's SIZE

// ringCounted returns how many blocks of ring.c were allocated.
func ringCounted(recs []ringRecord) (n int) {
	for _, r := range recs {
		if r.kind == ringAllocated && r.size == ringBlockSize {
			n++
		}
	}
	return n
}

// ringSum adds up what ring.c printed.
func ringSum(t testing.TB, out string) (n int) {
	t.Helper()
	for _, f := range strings.Fields(out) {
		v, err := strconv.Atoi(f)
		if err != nil {
			t.Fatalf("%q", out)
		}
		n += v
	}
	return n
}

// Programs that are hard to record run as they do alone, and each event of theirs
// arrives, in order.
func TestRingModes(t *testing.T) {
	library := ringLibrary(t, "gcc")
	program := ringProgram(t, "gcc", "test/ring.c", "-O2")
	bump := filepath.Join(t.TempDir(), "bump.so")
	plugin := filepath.Join(t.TempDir(), "plugin.so")
	for out, source := range map[string]string{bump: "test/ring_bump.c", plugin: "test/ring_plugin.c"} {
		if text, err := exec.Command("gcc", "-O2", "-fPIC", "-shared", "-fno-builtin", "-fno-optimize-sibling-calls", "-o", out, source).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	for i, m := range []struct {
		name   string
		args   []string
		config ringConfig
		images int  // 0: any number
		free   bool // the number of blocks is the run's own
		bump   bool // with that allocator
	}{
		{name: "one thread", args: []string{"churn", "20000"}, images: 1},
		{name: "16 threads", args: []string{"threads", "3000"}, images: 1},
		{name: "16 threads, small rings", args: []string{"threads", "3000"}, config: ringConfig{words: 4096}, images: 1},
		{name: "libc holds the thread's lock", args: []string{"getattr", "20"}, images: 1},
		{name: "stacks of 16 KB", args: []string{"small", "100"}, images: 1},
		{name: "SCHED_FIFO on one processor", args: []string{"fifo", "5000"}, config: ringConfig{words: 4096}, images: 1},
		{name: "200 threads at a barrier", args: []string{"barrier", "20"}, images: 1},
		{name: "dlopen and fork", args: []string{"loads", "30"}, config: ringConfig{children: 1}, free: true},
		{name: "fflush and fork", args: []string{"flushes", "30"}, config: ringConfig{children: 1}, images: 31},
		{name: "realloc and fork", args: []string{"reallocs", "30"}, config: ringConfig{children: 1}, images: 31},
		{name: "coroutines", args: []string{"coroutines", "200"}, images: 1},
		{name: "signals", args: []string{"signals", "30000"}, images: 1, bump: true},
		{name: "deep recursion", args: []string{"recurse", "5000"}, images: 1},
		{name: "exec by the kernel", args: []string{"execve", "1000"}, images: 2},
		{name: "execveat", args: []string{"execveat", "1000"}, images: 2},
		{name: "exit_group", args: []string{"exit_group", "1000"}, images: 1},
		{name: "kill", args: []string{"kill", "1000"}, images: 1},
		{name: "vfork", args: []string{"vfork", "1000"}, images: 1},
		{name: "forks, children recorded", args: []string{"fork", "1000"}, config: ringConfig{children: 1}, images: 3},
		{name: "forks, children not recorded", args: []string{"fork", "1000"}, images: 1},
		{name: "closed descriptors, another root and user", args: []string{"closed", "1000"}, images: 1},
		{name: "limited and locked memory", args: []string{"limited", "1000"}, images: 1},
		{name: "modules", args: []string{"modules", "50", plugin}, images: 1},
	} {
		for clock, name := range []string{"counter", "cycles"} {
			if clock != i%2 && !full() || clock == 1 && !cycles() {
				continue
			}
			t.Run(m.name+"/"+name, func(t *testing.T) {
				var alone []string
				args := append([]string{program}, m.args...)
				if m.bump {
					alone = []string{"LD_PRELOAD=" + bump}
				}
				wantOut, wantErr := runRing(t, "", nil, alone, "", args...)
				config := m.config
				config.clock = clock
				r := newRing(t, config)
				lib := library
				if m.bump {
					lib += ":" + bump
				}
				out, err := runRing(t, lib, r, nil, "", args...)
				if fmt.Sprint(err) != fmt.Sprint(wantErr) || !m.free && out != wantOut {
					t.Fatalf("%q, %v; alone %q, %v", out, err, wantOut, wantErr)
				}
				recs := r.end(t)
				all := replayRing(t, recs)
				if m.images != 0 && len(all) != m.images {
					t.Errorf("%d images, want %d", len(all), m.images)
				}
				for _, p := range all {
					if p.image == nil {
						t.Errorf("process %d: no image", p.pid)
						continue
					}
					if parent := uint32(p.image[1] >> 32); p.image[2] != 0 { // a fork's frees of what it inherited
						if all[p.image[2]] == nil || all[p.image[2]].pid != parent {
							t.Errorf("process %d: parent %d, image %x", p.pid, parent, p.image[2])
						}
						continue
					}
					p.consistent(t)
				}
				if got, want := ringCounted(recs), ringSum(t, out); got != want || r.lost() != 0 {
					t.Errorf("%d blocks recorded and %d events lost, want %d and 0", got, r.lost(), want)
				}
			})
		}
	}
}

// cycles reports whether the library has a cycle counter for stamps.
func cycles() bool {
	text, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	return err == nil && (bytes.HasPrefix(text, []byte("tsc")) || bytes.HasPrefix(text, []byte("kvm")) || bytes.HasPrefix(text, []byte("arch_sys")))
}

// Programs of other languages, whose runtimes have threads, signals, stacks and code of their
// own, and other allocators: the output is what it is alone.
func TestRingOthers(t *testing.T) {
	library := ringLibrary(t, "gcc")
	program := ringProgram(t, "gcc", "test/ring.c", "-O2")
	rust := filepath.Join(programs, "ring_threads")
	if _, err := exec.LookPath("rustc"); err == nil {
		if out, err := exec.Command("rustc", "-O", "-o", rust, "test/ring_threads.rs").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	const node = "let n=0; for(let i=0;i<20000;i++) n+=Buffer.from(JSON.stringify({i, s:String(i)})).length; console.log(n)"
	jemalloc, tcmalloc := "libjemalloc.so.2", "libtcmalloc_minimal.so.4"
	for _, c := range []struct {
		name, preload string
		args          []string
		full          bool
	}{
		{"Rust", "", []string{rust}, false},
		{"Java", "", []string{"java", "-Xshare:auto", "test/RingThreads.java"}, true},
		{"Node", "", []string{"node", "-e", node}, true},
		{"jemalloc, threads", jemalloc, []string{program, "threads", "2000"}, false},
		{"jemalloc, realloc and fork", jemalloc, []string{program, "reallocs", "20"}, false},
		{"jemalloc, dlopen and fork", jemalloc, []string{program, "loads", "20"}, true},
		{"tcmalloc, threads", tcmalloc, []string{program, "threads", "2000"}, false},
		{"tcmalloc, realloc", tcmalloc, []string{program, "small", "200"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.full && !full() {
				t.Skip("LWSBT_FULL=1 runs it")
			}
			cmdtest.Need(t, c.args[0])
			lib, alone := library, []string{}
			if c.preload != "" {
				if out, err := exec.Command("ldconfig", "-p").Output(); err != nil || !bytes.Contains(out, []byte(c.preload)) {
					t.Skipf("%s is not installed", c.preload)
				}
				lib += ":" + c.preload
				alone = append(alone, "LD_PRELOAD="+c.preload)
			}
			wantOut, wantErr := runRing(t, "", nil, alone, "", c.args...)
			r := newRing(t, ringConfig{clock: 1, children: 1, slots: 1024})
			out, err := runRing(t, lib, r, nil, "", c.args...)
			if fmt.Sprint(err) != fmt.Sprint(wantErr) || !strings.Contains(c.name, "dlopen") && out != wantOut {
				t.Errorf("%q, %v; alone %q, %v", out, err, wantOut, wantErr)
			}
			allocs := 0
			for _, p := range replayRing(t, r.end(t)) {
				allocs += p.allocs
				if p.image != nil && p.image[2] == 0 && p.twice != 0 {
					t.Errorf("process %d: %d allocations at live addresses", p.pid, p.twice)
				}
			}
			if allocs < 1000 || r.lost() != 0 {
				t.Errorf("%d allocations, %d events lost", allocs, r.lost())
			}
		})
	}
}

// Stacks end at main's callers however deep, up to the limit, which the record tells.
func TestRingDepth(t *testing.T) {
	library := ringLibrary(t, "gcc")
	program := ringProgram(t, "gcc", "test/ring.c", "-O1", "-fno-optimize-sibling-calls")
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

// In a thread's stack the library takes at most 1 KB, and 256 bytes in static TLS.
func TestRingStackUse(t *testing.T) {
	library := ringLibrary(t, "gcc")
	program := ringProgram(t, "gcc", "test/ring.c", "-O2")
	alone, err := runRing(t, "", nil, nil, "", program, "used", "1000")
	if err != nil {
		t.Fatal(err)
	}
	r := newRing(t, ringConfig{clock: 1})
	with, err := runRing(t, library, r, nil, "", program, "used", "1000")
	if err != nil {
		t.Fatal(err)
	}
	r.end(t)
	first := func(s string) int { n, _ := strconv.Atoi(strings.Fields(s)[1]); return n }
	if a, w := first(alone), first(with); a == 0 || w-a > 1024 {
		t.Errorf("%d bytes of stack, %d alone: more than 1024", w, a)
	}
	out, err := exec.Command("readelf", "-lW", library).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 5 && f[0] == "TLS" {
			if n, err := strconv.ParseUint(f[5], 0, 64); err != nil || n > 256 {
				t.Errorf("%s: more than 256 bytes", line)
			}
			return
		}
	}
	t.Error("no TLS segment")
}

// A recorder that is killed holds the program up for about a second, one that is stopped does not
// for ever, and with lossy rings nobody waits; what is lost is counted.
func TestRingGone(t *testing.T) {
	library := ringLibrary(t, "gcc")
	program := ringProgram(t, "gcc", "test/ring.c", "-O2")
	t.Run("killed", func(t *testing.T) {
		r := newRing(t, ringConfig{words: 4096})
		r.pause.Store(true)
		gone := exec.Command("true")
		if err := gone.Run(); err != nil {
			t.Fatal(err)
		}
		*r.u32(56) = uint32(gone.Process.Pid)
		start := time.Now()
		out, err := runRing(t, library, r, nil, "", program, "threads", "10000")
		if err != nil || ringSum(t, out) != 160000 {
			t.Fatal(out, err)
		}
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("%v", d)
		}
		r.end(t)
	})
	t.Run("lossy", func(t *testing.T) {
		r := newRing(t, ringConfig{words: 4096, mode: 7})
		r.pause.Store(true)
		out, err := runRing(t, library, r, nil, "", program, "threads", "5000")
		if err != nil {
			t.Fatal(out, err)
		}
		recs := r.end(t)
		events := 0
		for _, rec := range recs {
			if rec.kind >= ringAllocated && rec.kind <= ringMoveFreed && rec.kind != ringMoveBegins {
				events++
			}
		}
		if r.lost() == 0 || events+r.lost() < 160000 {
			t.Errorf("%d events arrived, %d lost, want 160000 or some more", events, r.lost())
		}
		t.Logf("%d arrived, %d lost", events, r.lost())
	})
	t.Run("lossy, then read", func(t *testing.T) {
		r := newRing(t, ringConfig{words: 4096, mode: 7})
		r.pause.Store(true)
		go func() {
			for i := range 400 {
				time.Sleep(time.Millisecond)
				r.pause.Store(i%2 == 0)
			}
			r.pause.Store(false)
		}()
		out, err := runRing(t, library, r, nil, "", program, "threads", "50000")
		if err != nil {
			t.Fatal(out, err)
		}
		told := 0
		for _, rec := range r.end(t) { // whose stacks are all of places that the reader knows
			if rec.kind == ringLost {
				told += int(rec.addr)
			}
		}
		if told > r.lost() || r.lost() > 0 && told == 0 {
			t.Errorf("%d told, %d lost", told, r.lost())
		}
		t.Logf("%d told, %d lost", told, r.lost())
	})
	t.Run("no slot", func(t *testing.T) {
		r := newRing(t, ringConfig{slots: 4})
		out, err := runRing(t, library, r, nil, "", program, "barrier", "20")
		if err != nil || r.lost() == 0 {
			t.Fatal(out, err, r.lost())
		}
		r.end(t)
	})
}

// Switched off, nothing is recorded; frees alone, if that is what is wanted.
func TestRingMode(t *testing.T) {
	library := ringLibrary(t, "gcc")
	program := ringProgram(t, "gcc", "test/ring.c", "-O2")
	for _, mode := range []uint32{8, 1, 2} { // 8: neither
		r := newRing(t, ringConfig{mode: mode})
		if _, err := runRing(t, library, r, nil, "", program, "churn", "1000"); err != nil {
			t.Fatal(err)
		}
		var allocs, frees int
		for _, rec := range r.end(t) {
			switch rec.kind {
			case ringAllocated:
				allocs++
			case ringFreed:
				frees++
			}
		}
		if (allocs >= 1000) != (mode == 1) || (frees >= 1000) != (mode == 2) || allocs*frees != 0 {
			t.Errorf("mode %d: %d allocations, %d frees", mode, allocs, frees)
		}
	}
}

// A sample of R bytes has a block of s bytes with probability 1 - exp(-s/R): the number
// of blocks and bytes estimated from it is unbiased.
func TestRingSample(t *testing.T) {
	library := ringLibrary(t, "gcc")
	program := ringProgram(t, "gcc", "test/ring.c", "-O2")
	full := newRing(t, ringConfig{})
	if _, err := runRing(t, library, full, nil, "", program, "sizes", "200000"); err != nil {
		t.Fatal(err)
	}
	var blocks, bytes float64
	for _, r := range full.end(t) {
		if r.kind == ringAllocated {
			blocks++
			bytes += float64(r.size)
		}
	}
	for _, rate := range []uint64{100, 2000, 50000} {
		r := newRing(t, ringConfig{sample: rate})
		if _, err := runRing(t, library, r, nil, "", program, "sizes", "200000"); err != nil {
			t.Fatal(err)
		}
		recs := r.end(t)
		p := only(t, replayRing(t, recs))
		var n, b, variance, bvariance float64
		for _, rec := range recs {
			if rec.kind != ringAllocated {
				continue
			}
			keep := 1 - math.Exp(-float64(rec.size)/float64(rate))
			n += 1 / keep
			b += float64(rec.size) / keep
			variance += (1 - keep) / (keep * keep)
			bvariance += float64(rec.size*rec.size) * (1 - keep) / (keep * keep)
		}
		t.Logf("sample %d: %d of %.0f blocks recorded, %.0f estimated (±%.0f); %.0f bytes, %.0f estimated (±%.0f)",
			rate, p.allocs, blocks, n, math.Sqrt(variance), bytes, b, math.Sqrt(bvariance))
		if sigmas(n, blocks, variance) > 4.5 || sigmas(b, bytes, bvariance) > 4.5 {
			t.Errorf("sample %d: estimates are off", rate)
		}
		if rate > 100 && float64(p.allocs) > blocks*0.9 {
			t.Errorf("sample %d: %d blocks of %.0f", rate, p.allocs, blocks)
		}
		// Frees of recorded blocks are told: half of the blocks are freed.
		if live := float64(len(p.live)); math.Abs(live-float64(p.allocs)/2) > 6*math.Sqrt(float64(p.allocs)/4)+20 {
			t.Errorf("sample %d: %.0f of %d are live", rate, live, p.allocs)
		}
	}
}

// Stacks are those of the compiler's unwinder, on programs of others: all of its frames, and beyond
// those only where it has no table.
func TestRingUnwinder(t *testing.T) {
	library := ringLibrary(t, "gcc", "-DLWSBT_CHECK")
	programs := [][]string{
		{"python3", "-c", "import json; print(len(json.dumps([[str(i)] for i in range(20000)])))"},
		{"git", "log", "--stat", "-3"},
		{"bash", "-c", "for i in {1..500}; do x+=$i; done; echo ${#x}"},
		{"openssl", "version", "-a"},
	}
	if full() {
		programs = append(programs, [][]string{
			{"node", "-e", "let a=[];for(let i=0;i<100000;i++)a.push({x:i,y:String(i)}); console.log(JSON.stringify(a).length)"},
			{"java", "-version"},
			{"sqlite3", ":memory:", "create table t(a,b); with recursive c(x) as (select 1 union all select x+1 from c where x<20000) insert into t select x, hex(x) from c; select count(*) from t group by b%7"},
			{"gdb", "-batch", "-ex", "info functions walk", library},
			{"gcc", "-O2", "-c", "-o", "/dev/null", "-Iinclude", "src/capture_arm.c"},
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

// Threads, forks, modules and signals at once, in a program that does nothing else: long with
// LWSBT_FULL.
func TestRingStorm(t *testing.T) {
	library := ringLibrary(t, "gcc")
	program := ringProgram(t, "gcc", "test/ring_storm.c", "-O2")
	seconds := "2"
	if full() {
		seconds = "600"
	}
	for clock := range 2 {
		if clock == 1 && !cycles() {
			continue
		}
		r := newRing(t, ringConfig{children: 1, clock: clock, slots: 4096, words: 4096, mode: 3})
		r.forget.Store(true)
		out, err := runRing(t, library, r, nil, "", program, seconds)
		if err != nil {
			t.Fatal(out, err)
		}
		r.end(t)
		t.Logf("%s, %d records", strings.TrimSpace(out), r.read)
	}
}

// Other machines and C libraries, some under qemu: blocks, order, and the functions on
// their stacks.
func TestRingMachines(t *testing.T) {
	for _, m := range []struct{ name, cc, run, flags string }{
		{"clang", "clang", "", ""},
		{"musl", "musl-gcc", "", "-Wl,--eh-frame-hdr -fasynchronous-unwind-tables"},
		{"i686", "i686-linux-gnu-gcc", "/usr/i686-linux-gnu/lib/ld-linux.so.2 --library-path /usr/i686-linux-gnu/lib", ""},
		{"aarch64", "aarch64-linux-gnu-gcc", "qemu-aarch64 -L /usr/aarch64-linux-gnu", ""},
		{"riscv64", "riscv64-linux-gnu-gcc", "qemu-riscv64 -L /usr/riscv64-linux-gnu", "-fasynchronous-unwind-tables"},
		{"arm", "arm-linux-gnueabihf-gcc", "qemu-arm -L /usr/arm-linux-gnueabihf", ""},
		{"mipsel", "mipsel-linux-gnu-gcc", "qemu-mipsel -L /usr/mipsel-linux-gnu", ""},
	} {
		for _, mode := range []string{"churn", "threads", "small", "getattr", "fork", "execve"} {
			t.Run(m.name+"/"+mode, func(t *testing.T) {
				if !full() {
					t.Skip("LWSBT_FULL=1 runs it")
				}
				library := ringLibrary(t, m.cc)
				program := ringProgram(t, m.cc, "test/ring.c", append(strings.Fields(m.flags), "-O1", "-fno-optimize-sibling-calls")...)
				fns := ringFunctions(t, program)
				r := newRing(t, ringConfig{children: 1})
				args := strings.Fields(m.run)
				if len(args) > 0 {
					cmdtest.Need(t, args[0])
				}
				preload := library
				if strings.HasPrefix(m.run, "qemu") { // it is not to be loaded into the emulator
					args = slices.Concat(args, []string{"-E", "LD_PRELOAD=" + library})
					preload = ""
				}
				if strings.HasPrefix(m.run, "qemu") && mode == "execve" {
					t.Skip("the kernel cannot run it")
				}
				out, err := runRing(t, preload, r, nil, "", append(args, program, mode, "50")...)
				if err != nil {
					t.Fatal(out, err)
				}
				recs := r.end(t)
				all := replayRing(t, recs)
				if n := ringCounted(recs); n != ringSum(t, out) || r.lost() != 0 {
					t.Errorf("%d blocks, want %s, %d lost", n, out, r.lost())
				}
				named := 0
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
					if s := strings.Join(names, " "); strings.HasPrefix(s, "block churn ") {
						named++
					} else if named == 0 {
						t.Errorf("stack %q of %x", names, rec.stack)
						break
					}
				}
				if named != ringSum(t, out) {
					t.Errorf("%d stacks with the functions, want %s", named, out)
				}
			})
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
