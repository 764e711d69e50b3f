package main

import (
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
// blocks stay. At the end of each hour it dumps its live blocks, with the return addresses up to main; with DEVICE,
// device/ does. Definitions change its code: MOVED adds functions and lines before, NAME renames topic_build, INLINE
// inlines outbox_push.
const firmwareSource = `#include <stdint.h>
#include <stdio.h>
#ifndef NAME
#define NAME topic_build
#endif
#ifndef INLINE
#define INLINE __attribute__((noinline))
#endif
int count;
#ifdef DEVICE
#include <stdlib.h>
#include "board.h"
#include "lwsbt.h"
static void put(void *arg, const char *text, size_t len) { (void)arg; board_put(text, len); }
static uint64_t hours;
static uint64_t now(void *arg) { (void)arg; return hours * 3600000000u; }
const struct lwsbt_out lwsbt_wrap_out = { .put = put };
const struct lwsbt_port lwsbt_wrap_port = { .time = now };
static void *volatile blocks[4096];
#define take(size) (blocks[count] = malloc(size), count++)
static void release(int to)
{
	while (count > to)
		free(blocks[--count]);
}
static void boot(void) { lwsbt_wrap_begin("node", BOOT); }
static void dump(int hour)
{
	hours = hour + 1;
	lwsbt_wrap_dump("timer");
}
#else
struct block { unsigned size; int depth; uintptr_t pcs[8]; } blocks[4096];
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
static void release(int to) { count = to; }
static void boot(void) { printf("~h#boot prog=node w=64 " BOOT "\n"); }
static void dump(int hour)
{
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
#endif
#ifdef ELSEWHERE
__attribute__((noinline)) void filler(void) { __asm__(".space 8192"); }
#endif
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
	volatile int at = take(32);
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
			release(before + (hour == 0));
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
#ifndef DEVICE
	main_frame = __builtin_frame_address(0);
#endif
	boot();
#ifdef ELSEWHERE
	if (now(0))
		filler();
#endif
	sensor_task();
	for (int hour = 0; hour < 12; hour++) {
		volatile int sum = net_task(hour);
#ifdef NEW
		sum += history_keep();
#endif
		dump(hour);
	}
#ifdef DEVICE
	board_exit();
#endif
	return 0;
}
`

// target is a machine that a firmware is built for: the compiler with its options, what is linked besides, and the
// command that runs it.
type target struct {
	name, gcc, files, strip, run string
	device                       string // options for lwsbt.c, "" for a process
}

const (
	processOptions = " -no-pie -fno-omit-frame-pointer"
	firmwareDir    = "../../../examples/firmware/"
	deviceOptions  = " -DDEVICE -I../../../device/amalgamation -I" + firmwareDir + " -ffunction-sections -Wl,--gc-sections,--no-warnings,--wrap=malloc,--wrap=free,--wrap=calloc,--wrap=realloc"
	mps2Options    = deviceOptions + " -nostartfiles --specs=nano.specs --specs=nosys.specs"
	mps2Run        = "qemu-system-arm -M mps2-an385 -nographic -semihosting -kernel"
	profileOptions = "-DLWSBT_WRAP -DLWSBT_WRAP_NODES=640 -DLWSBT_WRAP_ENTRIES=180"
)

var (
	host   = target{"host", "gcc" + processOptions, "", "strip", "", ""}
	arm    = target{"aarch64", "aarch64-linux-gnu-gcc -static" + processOptions, "", "aarch64-linux-gnu-strip", "qemu-aarch64", ""}
	m3     = target{"Cortex-M3", "arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb" + mps2Options, firmwareDir + "mps2.c -T " + firmwareDir + "mps2.ld", "arm-none-eabi-strip", mps2Run, profileOptions}
	stacks = target{"Cortex-M3, stacks", m3.gcc, m3.files, m3.strip, m3.run, "-DLWSBT_WRAP"}
	m0     = target{"Cortex-M0", "arm-none-eabi-gcc -mcpu=cortex-m0 -mthumb" + mps2Options, m3.files, m3.strip, m3.run, profileOptions}
	rv32   = target{"RISC-V", "riscv64-unknown-elf-gcc -march=rv32imac -mabi=ilp32 -mcmodel=medany --specs=picolibc.specs" + deviceOptions +
		",--defsym=__flash=0x80000000,--defsym=__flash_size=0x100000,--defsym=__ram=0x80100000,--defsym=__ram_size=0x40000,--defsym=__stack_size=0x4000", firmwareDir + "virt.c",
		"riscv64-unknown-elf-strip", "qemu-system-riscv32 -M virt -bios none -nographic -kernel", profileOptions}
)

// build is how a firmware is built.
type build struct {
	flags string // for gcc
	strip string // for strip, "" to keep all
	name  string // of topic_build
}

// made is a firmware and the log that it wrote.
type made struct{ elf, log string }

// deviceLibrary compiles lwsbt.c for a target, with more options.
func (m target) deviceLibrary(t testing.TB, object, options string) {
	t.Helper()
	gcc := strings.Fields(m.gcc + " -g -c -o " + object + " ../../../device/amalgamation/lwsbt.c -Os " + m.device + options)
	if out, err := exec.Command(gcc[0], gcc[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// makeFirmware builds a firmware and runs it. boot is what its boot line says; BUILD in it is the build ID.
func (m target) makeFirmware(t testing.TB, dir, name, boot string, b build) made {
	t.Helper()
	source, elf := filepath.Join(dir, name+".c"), filepath.Join(dir, name+".elf")
	if err := os.WriteFile(source, []byte(firmwareSource), 0o600); err != nil {
		t.Fatal(err)
	}
	id := " -Wl,--build-id=sha1 "
	if m.device != "" {
		if !strings.Contains(boot, "BUILD") {
			id = " -Wl,--build-id=none "
		}
		_, boot, _ = strings.Cut(boot, "fw=") // device/ writes the line
		object := filepath.Join(dir, "lwsbt.o")
		if strings.Contains(b.flags, "-flto") {
			m.deviceLibrary(t, object, " -flto")
		} else if _, err := os.Stat(object); err != nil {
			m.deviceLibrary(t, object, "")
		}
		m.files += " " + object
	}
	args := append(strings.Fields(m.gcc+id), "-g", "-O2", "-fno-optimize-sibling-calls", `-DBOOT="`+boot+`"`, "-o", elf)
	args = append(append(append(args, strings.Fields(b.flags)...), source), strings.Fields(m.files)...)
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

// firmwareChanges are the second builds of a firmware that leaks.
var firmwareChanges = map[string]struct {
	build
	want string // answers of diff, sorted
}{
	"moved":                  {withLeak("-DMOVED=3"), "still there topic_build"},
	"moved and mended":       {withoutLeak("-DMOVED=3"), "mended topic_build"},
	"renamed":                {withLeak("-DMOVED=3 -DNAME=topic_make"), "gone, or under another name topic_build, new leak topic_make"},
	"inlined":                {withLeak("-DMOVED=3 -DINLINE=inline"), "still there topic_build"},
	"link-time optimization": {withLeak("-DMOVED=3 -flto"), "still there topic_build"},
	"a new leak":             {withoutLeak("-DMOVED=3 -DNEW"), "mended topic_build, new leak history_keep"},
	"another leak":           {withLeak("-DMOVED=3 -DNEW"), "new leak history_keep, still there topic_build"},
	"linked elsewhere":       {withLeak(elsewhere), "still there topic_build"},
	"without lines":          {build{"-DLEAK=1 -DMOVED=3", "-g", "topic_build"}, "still there topic_build"},
	"inlined, without lines": {build{"-DLEAK=1 -DMOVED=3 -DINLINE=inline", "-g", "topic_build"}, "cannot tell topic_build, cannot tell topic_build"},
	"without names":          {build{"-DLEAK=1 -DMOVED=3", "-s", ""}, "cannot tell new, cannot tell topic_build"},
}

func withLeak(flags string) build    { return build{flags: "-DLEAK=1 " + flags, name: "topic_build"} }
func withoutLeak(flags string) build { return build{flags: "-DLEAK=0 " + flags, name: "topic_build"} }

// elsewhere moves the code of a process; a target of device/ has it moved by a function before it.
const elsewhere = "-Wl,-Ttext-segment=0x600000"

// firmwarePair is how both builds of a pair are made.
type firmwarePair struct {
	target
	level, boot string
	changes     []string // nil for all
}

// pairs returns the pairs of the test: few, some more with LWSBT_FULL, or all.
func firmwarePairs() []firmwarePair {
	const byID, byVersion = "build=BUILD fw=%s", "fw=%s"
	some := []string{"moved", "a new leak"}
	if !cmdtest.All() {
		list := []firmwarePair{{host, "-O2", byID, nil}, {host, "-O2", byVersion, some}}
		if cmdtest.Full() {
			list = append(list, firmwarePair{m3, "-Os", byVersion, some})
		}
		return list
	}
	var list []firmwarePair
	for _, level := range []string{"-O2", "-Os -fno-inline-small-functions", "-O1"} {
		for _, boot := range []string{byID, byVersion, ""} {
			list = append(list, firmwarePair{host, level, boot, nil})
		}
	}
	return append(list, firmwarePair{arm, "-O2", byID, nil}, firmwarePair{m3, "-O2", byID, nil}, firmwarePair{m3, "-Os", byVersion, nil},
		firmwarePair{stacks, "-Os", byID, nil}, firmwarePair{m0, "-O2", byVersion, nil}, firmwarePair{rv32, "-O2", byID, nil}, firmwarePair{rv32, "-Os", byVersion, nil})
}

// Two builds of a firmware, in which functions moved, were renamed, inlined, optimized together or stripped: each
// log gets the names of its build in both orders of -e, and diff tells what became of the leak.
func TestFirmwarePairs(t *testing.T) {
	pairs := 0
	for _, p := range firmwarePairs() {
		programs := []string{strings.Fields(p.gcc)[0], p.strip}
		if p.run != "" {
			programs = append(programs, strings.Fields(p.run)[0])
		}
		t.Run(p.name+p.level+" "+strings.TrimSuffix(p.boot, "=%s"), func(t *testing.T) {
			cmdtest.Need(t, programs...)
			for name, c := range firmwareChanges {
				if p.changes == nil || slices.Contains(p.changes, name) {
					pairs++
					t.Run(name, func(t *testing.T) { p.test(t, c.build, c.want) })
				}
			}
		})
	}
	t.Logf("%d pairs", pairs)
}

func (p firmwarePair) test(t *testing.T, b build, want string) {
	say := func(version string) string { return strings.Replace(p.boot, "%s", version, 1) }
	dir := t.TempDir()
	b.flags += " " + p.level
	if p.device != "" {
		b.flags = strings.Replace(b.flags, elsewhere, "-DELSEWHERE", 1)
	}
	old, new := p.makeFirmware(t, dir, "old", say("1.2"), withLeak(p.level)), p.makeFirmware(t, dir, "new", say("1.3"), b)
	for _, files := range [][]string{{"-e", old.elf, "-e", new.elf}, {"-e", new.elf, "-e", old.elf}} {
		out, errs, _ := command("", append(files, "diff", old.log, new.log)...)
		var got []string
		for _, m := range answers.FindAllStringSubmatch(out, -1) {
			got = append(got, m[1]+" "+m[2])
		}
		slices.Sort(got)
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("diff says %q, want %q\n%s%s", text, want, out, errs)
		}
		if b.name == "" {
			continue
		}
		leaks, errs, code := command("", append(files, "leaks", "-s", old.log)...)
		if !strings.Contains(leaks, "    topic_build old.c:") || code != 0 {
			t.Errorf("leaks of the old one, exit code %d\n%s%s", code, leaks, errs)
		}
	}
	if p.device != "" || strings.Contains(p.boot, "build") {
		out, errs, code := command("", "leaks", "-s", "-e", old.elf, new.log)
		if strings.Contains(p.boot, "build") && strings.Contains(out, "old.c") || code != 1 || !strings.Contains(errs, " ran") {
			t.Errorf("only the old file: exit code %d, %s\n%s", code, errs, out)
		}
	}
}
