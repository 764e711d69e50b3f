package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
	"github.com/lwsbt/lwsbt/symbol"
)

// firmwareSource is a program with two tasks. Each hour it publishes: topic_build allocates, and with LEAK, ten
// blocks stay. At the end of each hour it dumps its live blocks, with the return addresses up to main.
// Definitions change its code: MOVED adds functions and lines before, NAME renames topic_build, INLINE and
// NOINLINE inline outbox_push or not.
const firmwareSource = `#include <stdint.h>
#include <stdio.h>
#ifndef NAME
#define NAME topic_build
#endif
#ifndef INLINE
#define INLINE __attribute__((noinline))
#endif
struct block { unsigned size; int depth; uintptr_t pcs[8]; } blocks[4096];
int count;
uintptr_t *main_frame;
__attribute__((noinline)) int take(unsigned size)
{
	uintptr_t *fp = __builtin_frame_address(0);
	struct block *b = &blocks[count];
	b->size = size;
	for (b->depth = 0; fp != main_frame && b->depth < 8; fp = (uintptr_t *)fp[0])
		b->pcs[b->depth++] = fp[1];
	return count++;
}
#ifdef MOVED
__attribute__((noinline, used)) int added(int n)
{
	volatile int sum = 0;
	for (int i = 0; i < n; i++)
		sum += i * MOVED;


	return sum;
}
#endif
__attribute__((noinline)) int NAME(int n)
{
	int at = take(32);
	blocks[at].size += n & 0;
#ifdef MOVED
	at += added(0);
#endif
	return at + 1;
}
static INLINE int outbox_push(int n)
{
	int at = NAME(n);
	return at + n;
}
__attribute__((noinline)) int net_task(int hour)
{
	volatile int sum = 0;
	for (int i = 0; i < 10; i++) {
		int before = count;
		sum += outbox_push(hour);
		if (!LEAK)
			count = before + (hour == 0);
	}
	return sum;
}
__attribute__((noinline)) int sensor_task(void)
{
	volatile int sum = take(12);
	sum += take(12);
	return sum;
}
#ifdef NEW
__attribute__((noinline)) int history_keep(void)
{
	volatile int sum = take(20);
	return sum + 1;
}
#endif
int main(void)
{
	main_frame = __builtin_frame_address(0);
	printf("~h#boot prog=node w=64 " BOOT "\n");
	sensor_task();
	for (int hour = 0; hour < 12; hour++) {
		volatile int sum = net_task(hour);
#ifdef NEW
		sum += history_keep();
#endif
		long bytes = 0;
		for (int i = 0; i < count; i++)
			bytes += blocks[i].size;
		printf("~h#begin %d t=%lld n=%d b=%ld\n", hour, (hour + 1) * 3600000000ll, count, bytes);
		for (int i = 0; i < count; i++) {
			printf("~b#size: %u,", blocks[i].size);
			for (int k = 0; k < blocks[i].depth; k++)
				printf(" 0x%lx", (unsigned long)blocks[i].pcs[k]);
			printf("\n");
		}
		printf("~h#end %d n=%d b=%ld\n", hour, count, bytes);
	}
	return 0;
}
`

// target is a machine that a firmware is built for.
type target struct{ gcc, strip, run string }

var (
	host = target{"gcc", "strip", ""}
	arm  = target{"aarch64-linux-gnu-gcc -static", "aarch64-linux-gnu-strip", "qemu-aarch64"}
)

// build is how a firmware is built.
type build struct {
	flags string // for gcc
	strip string // for strip, "" to keep all
	name  string // of topic_build
}

// made is a firmware and the log that it wrote.
type made struct{ elf, log string }

// makeFirmware builds a firmware and runs it. boot is what its ~h#boot says; BUILD in it is the build ID.
func (m target) makeFirmware(t testing.TB, dir, name, boot string, b build) made {
	t.Helper()
	source, elf := filepath.Join(dir, name+".c"), filepath.Join(dir, name+".elf")
	if err := os.WriteFile(source, []byte(firmwareSource), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append(strings.Fields(m.gcc), "-g", "-O2", "-no-pie", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-Wl,--build-id=sha1", `-DBOOT="`+boot+`"`, "-o", elf)
	args = append(append(args, strings.Fields(b.flags)...), source)
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	if b.strip != "" {
		if out, err := exec.Command(m.strip, b.strip, elf).CombinedOutput(); err != nil {
			t.Fatalf("strip: %v\n%s", err, out)
		}
	}
	run := append(strings.Fields(m.run), elf)
	text, err := exec.Command(run[0], run[1:]...).Output()
	if err != nil {
		t.Fatal(err)
	}
	f, err := symbol.Open(elf, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	log := filepath.Join(dir, name+".log")
	if err := os.WriteFile(log, []byte(strings.Replace(string(text), "BUILD", f.BuildID, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return made{elf, log}
}

// answers has the answer of diff to each leak, and the function that allocates.
var answers = regexp.MustCompile(`(?m)^(new leak|still there|mended|gone, or under another name|cannot tell)\n(?:  .*\n)+?    (0x|\w+)`)

// Two builds of a firmware, in which functions moved, were renamed, inlined, optimized together or stripped: each
// log gets the names of its build in both orders of -e, and diff tells what became of the leak.
func TestFirmwarePairs(t *testing.T) {
	for _, program := range []string{"gcc", "strip"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program + " is not installed")
		}
	}
	leak := func(flags string) build { return build{flags: "-DLEAK=1 " + flags, name: "topic_build"} }
	fixed := func(flags string) build { return build{flags: "-DLEAK=0 " + flags, name: "topic_build"} }
	changes := map[string]struct {
		build
		want string // answers of diff, sorted as it lists them
	}{
		"moved":                  {leak("-DMOVED=3"), "still there topic_build"},
		"moved and mended":       {fixed("-DMOVED=3"), "mended topic_build"},
		"renamed":                {leak("-DMOVED=3 -DNAME=topic_make"), "gone, or under another name topic_build, new leak topic_make"},
		"inlined":                {leak("-DMOVED=3 -DINLINE=inline"), "still there topic_build"},
		"link-time optimization": {leak("-DMOVED=3 -flto"), "still there topic_build"},
		"a new leak":             {fixed("-DMOVED=3 -DNEW"), "mended topic_build, new leak history_keep"},
		"another leak":           {leak("-DMOVED=3 -DNEW"), "new leak history_keep, still there topic_build"},
		"linked elsewhere":       {leak("-Wl,-Ttext-segment=0x600000"), "still there topic_build"},
		"without lines":          {build{"-DLEAK=1 -DMOVED=3", "-g", "topic_build"}, "still there topic_build"},
		"without names":          {build{"-DLEAK=1 -DMOVED=3", "-s", ""}, "cannot tell new, cannot tell topic_build"},
	}
	boots := []string{"build=BUILD fw=%s", "fw=%s"}
	levels, targets := []string{"-O2"}, []target{host}
	if cmdtest.All() {
		boots, levels = append(boots, ""), []string{"-O2", "-Os -fno-inline-small-functions", "-O1"}
		if _, err := exec.LookPath(arm.run); err == nil {
			targets = append(targets, arm)
		}
	}
	pairs := 0
	for _, machine := range targets {
		for _, level := range levels {
			for i, boot := range boots {
				say := func(version string) string {
					if strings.Contains(boot, "%s") {
						return fmt.Sprintf(boot, version)
					}
					return boot
				}
				for name, c := range changes {
					if machine == arm && (level != "-O2" || i == 1) {
						continue
					}
					if i > 0 && !cmdtest.All() && name != "moved" && name != "a new leak" {
						continue
					}
					pairs++
					dir := t.TempDir()
					old := machine.makeFirmware(t, dir, "old", say("1.2"), leak(level))
					c.flags += " " + level
					new := machine.makeFirmware(t, dir, "new", say("1.3"), c.build)
					where := fmt.Sprintf("%s, %s, %s, %q", machine.gcc, name, level, boot)
					for _, files := range [][]string{{"-e", old.elf, "-e", new.elf}, {"-e", new.elf, "-e", old.elf}} {
						out, errs, _ := command("", append(files, "diff", old.log, new.log)...)
						var got []string
						for _, m := range answers.FindAllStringSubmatch(out, -1) {
							got = append(got, m[1]+" "+m[2])
						}
						slices.Sort(got)
						if text := strings.Join(got, ", "); text != c.want {
							t.Errorf("%s: diff says %q, want %q\n%s%s", where, text, c.want, out, errs)
						}
						if c.name == "" {
							continue
						}
						leaks, errs, code := command("", append(files, "leaks", "-s", old.log)...)
						if !strings.Contains(leaks, "    topic_build old.c:") || code != 0 {
							t.Errorf("%s: leaks of the old one, exit code %d\n%s%s", where, code, leaks, errs)
						}
					}
					if strings.Contains(boot, "build") {
						out, errs, code := command("", "leaks", "-s", "-e", old.elf, new.log)
						if strings.Contains(out, "old.c") || code != 1 || !strings.Contains(errs, " ran; ") {
							t.Errorf("%s: only the old file: exit code %d, %s\n%s", where, code, errs, out)
						}
					}
				}
			}
		}
	}
	t.Logf("%d pairs", pairs)
}
