//go:build linux

package record_test

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
	program := ringProgram(t, "gcc", "testdata/ring.c", "-O2")
	bump := filepath.Join(t.TempDir(), "bump.so")
	plugin := filepath.Join(t.TempDir(), "plugin.so")
	for out, source := range map[string]string{bump: "testdata/ring_bump.c", plugin: "testdata/ring_plugin.c"} {
		if text, err := exec.Command("gcc", "-O2", "-fPIC", "-shared", "-fno-builtin", "-fno-optimize-sibling-calls", "-o", out, source).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	for i, m := range ringModes(plugin) {
		if m.long && !cmdtest.Full() {
			continue
		}
		for clock, name := range []string{"counter", "cycles"} {
			if clock != i%2 && !cmdtest.All() || clock == 1 && !hasCycles() {
				continue
			}
			t.Run(m.name+"/"+name, func(t *testing.T) {
				m.config.clock = clock
				m.run(t, library, program, bump)
			})
		}
	}
}

// A ringMode is a mode of ring.c.
type ringMode struct {
	name   string
	args   []string
	config ringConfig
	images int  // 0: any number
	free   bool // the number of blocks is the run's own
	bump   bool // with that allocator
	long   bool // only with LWSBT_FULL
	env    string
}

func ringModes(plugin string) []ringMode {
	return []ringMode{
		{name: "one thread", args: []string{"churn", "20000"}, images: 1},
		{name: "16 threads", args: []string{"threads", "3000"}, images: 1},
		{name: "16 threads, small rings", args: []string{"threads", "3000"}, config: ringConfig{words: 4096}, images: 1, long: true},
		{name: "libc holds the thread's lock", args: []string{"getattr", "20"}, images: 1},
		{name: "stacks of 16 KB", args: []string{"small", "100"}, images: 1, long: true},
		{name: "SCHED_FIFO on one processor", args: []string{"fifo", "5000"}, config: ringConfig{words: 4096}, images: 1},
		{name: "200 threads at a barrier", args: []string{"barrier", "20"}, images: 1},
		{name: "dlopen and fork", args: []string{"loads", "30"}, config: ringConfig{children: 1}, free: true},
		{name: "fflush and fork", args: []string{"flushes", "30"}, config: ringConfig{children: 1}, images: 31, long: true},
		{name: "realloc and fork", args: []string{"reallocs", "30"}, config: ringConfig{children: 1}, images: 31},
		{name: "coroutines", args: []string{"coroutines", "200"}, images: 1},
		{name: "a stack without an end", args: []string{"switch", "100"}, images: 1},
		{name: "one arena", args: []string{"contend", "20000"}, images: 1, env: "GLIBC_TUNABLES=glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1", long: true},
		{name: "one arena again", args: []string{"contend", "20000"}, images: 1, env: "GLIBC_TUNABLES=glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1", long: true},
		{name: "signals", args: []string{"signals", "30000"}, images: 1, bump: true, long: true},
		{name: "deep recursion", args: []string{"recurse", "5000"}, images: 1},
		{name: "exec by the kernel", args: []string{"execve", "1000"}, images: 2},
		{name: "execveat", args: []string{"execveat", "1000"}, images: 2, long: true},
		{name: "exit_group", args: []string{"exit_group", "1000"}, images: 1},
		{name: "kill", args: []string{"kill", "1000"}, images: 1},
		{name: "vfork", args: []string{"vfork", "1000"}, images: 1, long: true},
		{name: "forks, children recorded", args: []string{"fork", "1000"}, config: ringConfig{children: 1}, images: 3},
		{name: "forks, children not recorded", args: []string{"fork", "1000"}, images: 1},
		{name: "closed descriptors, another root and user", args: []string{"closed", "1000"}, images: 1},
		{name: "limited and locked memory", args: []string{"limited", "1000"}, images: 1},
		{name: "modules", args: []string{"modules", "50", plugin}, images: 1},
	}
}

func (m ringMode) run(t *testing.T, library, program, bump string) {
	alone, env := []string{m.env}, []string{m.env}
	args := append([]string{program}, m.args...)
	if m.bump {
		alone = append(alone, "LD_PRELOAD="+bump)
		library += ":" + bump
	}
	wantOut, wantErr := runRing(t, "", nil, alone, "", args...)
	r := newRing(t, m.config)
	out, err := runRing(t, library, r, env, "", args...)
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
		if p.image[3] == 0 {
			p.consistent(t)
			continue
		}
		// A fork also frees blocks of its parent.
		if parent := all[p.image[3]]; parent == nil || parent.pid != uint32(p.image[1]>>32) {
			t.Errorf("process %d: parent %d, image %x", p.pid, p.image[1]>>32, p.image[3])
		}
	}
	if got, want := ringCounted(recs), ringSum(t, out); got != want || r.lost() != 0 {
		t.Errorf("%d blocks recorded and %d events lost, want %d and 0", got, r.lost(), want)
	}
}

// Programs of other languages, whose runtimes have threads, signals, stacks and code of their
// own, and other allocators: the output is what it is alone.
func TestRingOthers(t *testing.T) {
	cmdtest.Long(t)
	library := ringLibrary(t, "gcc")
	program := ringProgram(t, "gcc", "testdata/ring.c", "-O2")
	rust := filepath.Join(programs, "ring_threads")
	if _, err := exec.LookPath("rustc"); err == nil {
		if out, err := exec.Command("rustc", "-O", "-o", rust, "testdata/ring_threads.rs").CombinedOutput(); err != nil {
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
		{"Java", "", []string{"java", "-Xshare:auto", "testdata/RingThreads.java"}, true},
		{"Node", "", []string{"node", "-e", node}, true},
		{"jemalloc, threads", jemalloc, []string{program, "threads", "2000"}, false},
		{"jemalloc, realloc and fork", jemalloc, []string{program, "reallocs", "20"}, false},
		{"jemalloc, dlopen and fork", jemalloc, []string{program, "loads", "20"}, true},
		{"tcmalloc, threads", tcmalloc, []string{program, "threads", "2000"}, false},
		{"tcmalloc, realloc", tcmalloc, []string{program, "small", "200"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.full && !cmdtest.Full() {
				t.Skip("LWSBT_FULL=1 runs it")
			}
			cmdtest.Need(t, c.args[0])
			ringOther(t, library, c.preload, c.args)
		})
	}
}

func ringOther(t *testing.T, library, preload string, args []string) {
	var alone []string
	if preload != "" {
		if out, err := exec.Command("ldconfig", "-p").Output(); err != nil || !bytes.Contains(out, []byte(preload)) {
			t.Skipf("%s is not installed", preload)
		}
		library += ":" + preload
		alone = append(alone, "LD_PRELOAD="+preload)
	}
	wantOut, wantErr := runRing(t, "", nil, alone, "", args...)
	r := newRing(t, ringConfig{children: 1, slots: 1024})
	out, err := runRing(t, library, r, nil, "", args...)
	if fmt.Sprint(err) != fmt.Sprint(wantErr) || !slices.Contains(args, "loads") && out != wantOut {
		t.Errorf("%q, %v; alone %q, %v", out, err, wantOut, wantErr)
	}
	allocs := 0
	for _, p := range replayRing(t, r.end(t)) {
		allocs += p.allocs
		if p.image != nil && p.image[3] == 0 && p.twice != 0 {
			t.Errorf("process %d: %d allocations at live addresses", p.pid, p.twice)
		}
	}
	if allocs < 1000 || r.lost() != 0 {
		t.Errorf("%d allocations, %d events lost", allocs, r.lost())
	}
}

// In a thread's stack the library takes at most 1 KB, whatever compiler built it, and 256 bytes in static TLS.
func TestRingStackUse(t *testing.T) {
	library := ringLibrary(t, "gcc")
	program := ringProgram(t, "gcc", "testdata/ring.c", "-O2")
	alone, err := runRing(t, "", nil, nil, "", program, "used", "1000")
	if err != nil {
		t.Fatal(err)
	}
	compilers := []string{"gcc"}
	if cmdtest.Full() {
		compilers = append(compilers, "clang")
	}
	if cmdtest.All() {
		compilers = append(compilers, "gcc -march=native")
	}
	for _, cc := range compilers {
		r := newRing(t, ringConfig{clock: 1})
		with, err := runRing(t, ringLibrary(t, cc), r, nil, "", program, "used", "1000")
		if err != nil {
			t.Fatal(err)
		}
		r.end(t)
		first := func(s string) int { n, _ := strconv.Atoi(strings.Fields(s)[1]); return n }
		if a, w := first(alone), first(with); a == 0 || w-a > 1024 {
			t.Errorf("%s: %d bytes of stack, %d alone: more than 1024", cc, w, a)
		}
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

// A recorder that is killed does not hold the program up, one that is stopped does not
// for ever, and with lossy rings nobody waits; what is lost is counted.
func TestRingGone(t *testing.T) {
	library := ringLibrary(t, "gcc")
	program := ringProgram(t, "gcc", "testdata/ring.c", "-O2")
	for name, f := range map[string]func(t *testing.T, library, program string){
		"killed": ringKilled, "lossy": ringLossy, "lossy, then read": ringLossyRead, "no slot": ringNoSlot,
	} {
		t.Run(name, func(t *testing.T) { f(t, library, program) })
	}
}

func ringKilled(t *testing.T, library, program string) {
	r := newRing(t, ringConfig{words: 4096})
	r.pause.Store(true)
	*r.u32(60) = 0x40000000 | uint32(os.Getpid())                            // as the kernel sets it
	out, err := runRing(t, library, r, nil, "", program, "threads", "10000") // which ends
	if err != nil || ringSum(t, out) != 160000 {
		t.Fatal(out, err)
	}
	r.end(t)
}

func ringLossy(t *testing.T, library, program string) {
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
}

func ringLossyRead(t *testing.T, library, program string) {
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
	events := 0
	for _, rec := range r.end(t) { // whose stacks are all of places that the reader knows
		if rec.kind >= ringAllocated && rec.kind <= ringMoveFreed && rec.kind != ringMoveBegins {
			events++
		}
	}
	if events+r.lost() < 1600000 {
		t.Errorf("%d events arrived, %d lost, want 1600000 or some more", events, r.lost())
	}
	t.Logf("%d arrived, %d lost", events, r.lost())
}

func ringNoSlot(t *testing.T, library, program string) {
	r := newRing(t, ringConfig{slots: 4})
	out, err := runRing(t, library, r, nil, "", program, "barrier", "20")
	if err != nil || r.lost() == 0 {
		t.Fatal(out, err, r.lost())
	}
	r.end(t)
}

// Switched off, nothing is recorded; frees alone, if that is what is wanted.
func TestRingMode(t *testing.T) {
	library := ringLibrary(t, "gcc")
	program := ringProgram(t, "gcc", "testdata/ring.c", "-O2")
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
	program := ringProgram(t, "gcc", "testdata/ring.c", "-O2")
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

// Threads, forks, modules and signals at once, in a program that does nothing else: 5 seconds for each clock with
// LWSBT_FULL, ten minutes with LWSBT_FULL=all.
func TestRingStorm(t *testing.T) {
	cmdtest.Long(t)
	library := ringLibrary(t, "gcc")
	program := ringProgram(t, "gcc", "testdata/ring_storm.c", "-O2")
	seconds := "5"
	if cmdtest.All() {
		seconds = "600"
	}
	for clock := range 2 {
		if clock == 1 && !hasCycles() {
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

// hasCycles reports whether the library has a cycle counter for stamps.
func hasCycles() bool {
	text, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	return err == nil && (bytes.HasPrefix(text, []byte("tsc")) || bytes.HasPrefix(text, []byte("arch_sys")))
}
