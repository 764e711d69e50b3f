//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec/callpath"
	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
	"github.com/lwsbt/lwsbt/symbol"
)

// step is a part of a generated program. Its code calls the function stepN, which allocates; N is the number of
// the step, and A, B and C are numbers from 1 to 60. What it leaves, and what it ever allocates, is decided here.
type step struct {
	stepN     string // the body of void stepN(void); a whole function if it begins with "void"
	call      string // what main does; "" for stepN();
	live      func(a, b, c uint64) profile.Value
	ever      func(a, b, c uint64) profile.Value // nil if the C library decides it
	glibc, cc bool                               // only with glibc, only in C++
	plugin    bool                               // stepN is in a module that main opens and closes
	exec      bool                               // what was before it is gone
	inLibc    bool                               // the C library allocates for it
}

type rule = func(a, b, c uint64) profile.Value

func none(a, b, c uint64) profile.Value   { return profile.Value{} }
func blocks(a, b, c uint64) profile.Value { return profile.Value{Count: a, Bytes: a * b} } // A of B bytes
func times(by uint64, r rule) rule {
	return func(a, b, c uint64) profile.Value {
		v := r(a, b, c)
		return profile.Value{Count: by * v.Count, Bytes: by * v.Bytes}
	}
}
func perC(r rule) rule { return func(a, b, c uint64) profile.Value { return times(c, r)(a, b, c) } }

const keepsBlocks = "for (int i = 0; i < A; i++) sink = malloc(B);"

var steps = []step{
	{stepN: keepsBlocks, live: blocks, ever: blocks},
	{stepN: "sink = malloc(0); free(0); sink = realloc(0, A); sink = calloc(B, C); sink = reallocarray(0, C, C);",
		live: func(a, b, c uint64) profile.Value { return profile.Value{Count: 4, Bytes: a + b*c + c*c} },
		ever: func(a, b, c uint64) profile.Value { return profile.Value{Count: 4, Bytes: a + b*c + c*c} }},
	{stepN: "char *p = (char *)malloc(1); for (int i = 1; i <= 50 * A; i++) p = (char *)realloc(p, i * B % 5001 + 1); sink = p;",
		live: func(a, b, c uint64) profile.Value { return profile.Value{Count: 1, Bytes: 50*a*b%5001 + 1} },
		ever: func(a, b, c uint64) (v profile.Value) {
			v = profile.Value{Count: 1, Bytes: 1}
			for i := range 50 * a {
				v.Count, v.Bytes = v.Count+1, v.Bytes+(i+1)*b%5001+1
			}
			return v
		}},
	{stepN: "void *p; posix_memalign(&p, 64, A); sink = p; sink = aligned_alloc(64, 64 * B); sink = memalign(32, C); sink = valloc(A);",
		live: func(a, b, c uint64) profile.Value { return profile.Value{Count: 4, Bytes: 2*a + 64*b + c} },
		ever: func(a, b, c uint64) profile.Value { return profile.Value{Count: 4, Bytes: 2*a + 64*b + c} }},
	{stepN: "void *p[A]; for (int i = 0; i < A; i++) p[i] = malloc(B); for (int i = A; i--; ) free(p[i]);", live: none, ever: blocks},
	{inLibc: true, stepN: "char text[A + 1]; memset(text, 'x', A); text[A] = 0; sink = strdup(text);",
		live: func(a, b, c uint64) profile.Value { return profile.Value{Count: 1, Bytes: a + 1} },
		ever: func(a, b, c uint64) profile.Value { return profile.Value{Count: 1, Bytes: a + 1} }},
	{cc: true, stepN: "sink = operator new(A); sink = operator new[](B); sink = operator new(C, std::nothrow); sink = operator new(C, std::align_val_t(128));" +
		"operator delete(operator new(A), (size_t)A); operator delete[](operator new[](B, std::align_val_t(64)), std::align_val_t(64));",
		live: func(a, b, c uint64) profile.Value { return profile.Value{Count: 4, Bytes: a + b + c + 128} }, // libstdc++ rounds up to the alignment
		ever: func(a, b, c uint64) profile.Value { return profile.Value{Count: 6, Bytes: 2*a + b + c + 128 + 64} }},
	{cc: true, stepN: "for (int i = 0; i < A; i++) try { throw std::string(100 + B, 'x'); } catch (std::string &) {}", live: none},
	{stepN: keepsBlocks, call: "threads(C, stepN);", live: perC(blocks), ever: perC(blocks)},
	{stepN: keepsBlocks, call: "for (int i = 0; i < C; i++) detached(stepN);", live: perC(blocks), ever: perC(blocks)},
	{stepN: "void *p = 0; for (int i = 1; i <= 50 * A; i++) { p = realloc(p, i % 300 + 1); if (i % 7 == 0) { free(p); p = 0; } } free(p); sink = malloc(B);",
		call: "threads(C, stepN);", live: func(a, b, c uint64) profile.Value { return profile.Value{Count: c, Bytes: b * c} }},
	{stepN: "other = malloc(A);", call: "stepN(); threads(1, frees_other);", live: none,
		ever: func(a, b, c uint64) profile.Value { return profile.Value{Count: 1, Bytes: a} }},
	{stepN: "pthread_key_t k; pthread_key_create(&k, free); pthread_setspecific(k, malloc(A));", call: "threads(1, stepN);", live: none,
		ever: func(a, b, c uint64) profile.Value { return profile.Value{Count: 1, Bytes: a} }},
	{stepN: keepsBlocks, call: "for (int i = 0; i < C % 5; i++) { pid_t p = fork(); if (p == 0) { stepN(); _exit(0); } waitpid(p, 0, 0); }", live: none, ever: none},
	{stepN: keepsBlocks, call: "{ pid_t p = fork(); if (p == 0) { for (;;) pause(); } stepN(); kill(p, SIGKILL); waitpid(p, 0, 0); }", live: blocks, ever: blocks},
	{stepN: `if (system("exit 3") != 3 << 8) abort(); pid_t p = vfork(); if (p == 0) { execl("/bin/true", "true", (char *)0); _exit(1); } waitpid(p, 0, 0); sink = malloc(A);`,
		live: func(a, b, c uint64) profile.Value { return profile.Value{Count: 1, Bytes: a} }},
	{stepN: `FILE *f = popen("true", "r"); pclose(f); f = fopen("/dev/null", "r"); fclose(f); char *t; size_t n; f = open_memstream(&t, &n); for (int i = 0; i < A; i++) fputs("text", f); fclose(f); free(t);`,
		live: none},
	{stepN: "void stepN(int s) { for (int i = 0; i < A; i++) sink = malloc(B); }", call: "signal(SIGUSR1, stepN); raise(SIGUSR1);", live: blocks, ever: blocks},
	{stepN: "void stepN(int s) { for (int i = 0; i < A; i++) sink = malloc(B); }", call: "on_other_stack(stepN);", live: blocks, ever: blocks},
	{stepN: "void stepN(int depth) { if (depth > 0) stepN(depth - 1); else sink = malloc(A); asm volatile(\"\"); }", call: "stepN(C * B * 3);",
		live: func(a, b, c uint64) profile.Value { return profile.Value{Count: 1, Bytes: a} }, ever: func(a, b, c uint64) profile.Value { return profile.Value{Count: 1, Bytes: a} }},
	{stepN: "volatile char large[5 << 20]; large[0] = large[sizeof large - 1] = 1;" + keepsBlocks, live: blocks, ever: blocks},
	{stepN: "sink = malloc(A); longjmp(jump, 1);", call: "for (int volatile i = 0; i < B; i++) if (!setjmp(jump)) stepN();",
		live: func(a, b, c uint64) profile.Value { return profile.Value{Count: b, Bytes: a * b} },
		ever: func(a, b, c uint64) profile.Value { return profile.Value{Count: b, Bytes: a * b} }},
	{glibc: true, stepN: keepsBlocks, call: "coroutine(stepN);", live: blocks, ever: blocks},
	{stepN: keepsBlocks, call: "for (int fd = 3; fd < 1024; fd++) close(fd); stepN();", live: blocks, ever: blocks},
	{stepN: keepsBlocks, call: "storm_of_signals(1); stepN(); for (int i = 0; i < 500 * C; i++) free(malloc(i % 1000)); storm_of_signals(0);", live: blocks, ever: blocks},
	{stepN: keepsBlocks, plugin: true, call: "for (int i = 0; i < 1 + C % 3; i++) in_plugin(\"stepN\");",
		live: func(a, b, c uint64) profile.Value { return times(1+c%3, blocks)(a, b, c) },
		ever: func(a, b, c uint64) profile.Value { return times(1+c%3, blocks)(a, b, c) }},
	{stepN: keepsBlocks, call: "if (setgid(65534) || setuid(65534)) perror(0); stepN();", live: blocks, ever: blocks},
	{stepN: keepsBlocks, call: "stepN(); again(argv, N);", exec: true, live: none, ever: blocks},
}

// ends are ways to end, with the exit status. They run in the function "end", which is the last step.
var ends = []struct {
	code string
	want int
}{
	{"exit(0);", 0},
	{"atexit(at_exit);", 0},
	{"atexit(at_exit_7); exit(3);", 7},
	{"kill(getpid(), SIGKILL);", 128 + 9},
	{"abort();", 128 + 6},
	{"*(volatile int *)0 = 0;", 128 + 11},
	{"threads(1, exits_5);", 5},
	{"detached(exits_5); for (;;) pause();", 5},
	{"setenv(\"LD_PRELOAD\", \"\", 1); clearenv(); execl(\"/bin/sh\", \"sh\", \"-c\", \"exit 4\", (char *)0);", 4},
}

const generatedHead = `
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __cplusplus
#include <new>
#include <string>
#define EXPORT extern "C" __attribute__((noinline))
#else
#define EXPORT __attribute__((noinline))
#endif
static void *volatile sink;
#ifndef PLUGIN
static void *volatile other;
static jmp_buf jump;
static char *plugin;
static void frees_other(void) { free(other); }
static void exits_5(void) { exit(5); }
static void at_exit(void) { sink = malloc(1); }
static void at_exit_7(void) { sink = malloc(1); _exit(7); }
static void *runs(void *f) { ((void (*)(void))f)(); return 0; }
static void threads(int n, void (*f)(void)) {
	pthread_t list[64];
	for (int i = 0; i < n; i++) pthread_create(&list[i], 0, runs, (void *)f);
	for (int i = 0; i < n; i++) pthread_join(list[i], 0);
}
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static int running;
static void *runs_and_says(void *f) {
	runs(f);
	pthread_mutex_lock(&lock);
	running--;
	pthread_cond_signal(&ended);
	pthread_mutex_unlock(&lock);
	return 0;
}
static void detached(void (*f)(void)) {
	pthread_t id;
	pthread_mutex_lock(&lock);
	running++;
	pthread_create(&id, 0, runs_and_says, (void *)f);
	pthread_detach(id);
	while (running) pthread_cond_wait(&ended, &lock);
	pthread_mutex_unlock(&lock);
}
static void on_other_stack(void (*f)(int)) {
	static char memory[1 << 16];
	stack_t s;
	memset(&s, 0, sizeof s);
	s.ss_sp = memory;
	s.ss_size = sizeof memory;
	sigaltstack(&s, 0);
	struct sigaction a;
	memset(&a, 0, sizeof a);
	a.sa_handler = f;
	a.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR2, &a, 0);
	raise(SIGUSR2);
}
static void nothing(int s) {}
static void storm_of_signals(int on) {
	struct itimerval t;
	memset(&t, 0, sizeof t);
	t.it_interval.tv_usec = t.it_value.tv_usec = on * 100;
	struct sigaction a;
	memset(&a, 0, sizeof a);
	a.sa_handler = nothing;
	a.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &a, 0);
	setitimer(ITIMER_REAL, &t, 0);
}
static void in_plugin(const char *name) {
	void *m = dlopen(plugin, RTLD_NOW);
	if (!m) { puts(dlerror()); exit(99); }
	((void (*)(void))dlsym(m, name))();
	dlclose(m);
}
static void again(char **argv, int step) {
	char from[16];
	snprintf(from, sizeof from, "%d", step + 1);
	argv[2] = from;
	execv("/proc/self/exe", argv);
	exit(98);
}
#ifdef __GLIBC__
#include <ucontext.h>
static void coroutine(void (*f)(void)) {
	static char memory[1 << 16];
	static ucontext_t here, there;
	getcontext(&there);
	there.uc_stack.ss_sp = memory;
	there.uc_stack.ss_size = sizeof memory;
	there.uc_link = &here;
	makecontext(&there, f, 0);
	swapcontext(&here, &there);
}
#endif
#endif
`

// generated is a program, and what is true of it.
type generated struct {
	source     string
	live, ever map[string]profile.Value // by function
	exit       int
}

// generate makes a program of some steps, in any order.
func generate(seed uint64, musl bool) (g generated) {
	foreign := musl && byShell(seed)
	r := rand.New(rand.NewPCG(seed, 0))
	g.live, g.ever = map[string]profile.Value{}, map[string]profile.Value{}
	var functions, plugin, calls strings.Builder
	for n := range 15 {
		s := steps[r.IntN(len(steps))]
		for musl && (s.glibc || s.cc) || foreign && s.inLibc {
			s = steps[r.IntN(len(steps))]
		}
		a, b, c := 1+r.Uint64N(60), 1+r.Uint64N(60), 1+r.Uint64N(60)
		name := fmt.Sprintf("step%d", n)
		numbers := strings.NewReplacer("stepN", name, ", N)", fmt.Sprintf(", %d)", n))
		expand := func(text string) string {
			text = numbers.Replace(text)
			for letter, v := range map[string]uint64{"A": a, "B": b, "C": c} {
				text = replaceWord(text, letter, fmt.Sprint(v))
			}
			return text
		}
		body, call := s.stepN, s.call
		if !strings.HasPrefix(body, "void stepN") {
			body = "void stepN(void) { " + body + " asm volatile(\"\"); }"
		}
		if call == "" {
			call = "stepN();"
		}
		to := &functions
		if s.plugin {
			to = &plugin
		}
		to.WriteString("EXPORT " + expand(body) + "\n")
		fmt.Fprintf(&calls, "\tif (from <= %d) { %s }\n", n, expand(call))
		if s.exec {
			clear(g.live)
		}
		g.live[name] = s.live(a, b, c)
		if s.ever != nil {
			g.ever[name] = s.ever(a, b, c)
		}
	}
	end := ends[r.IntN(len(ends))]
	g.exit = end.want
	if strings.Contains(end.code, "execl(") {
		clear(g.live)
	}
	g.source = generatedHead + "#ifdef PLUGIN\n" + plugin.String() + "#else\n" + functions.String() +
		"int main(int argc, char **argv) {\n\tplugin = argv[1];\n\tint from = atoi(argv[2]);\n" + calls.String() + "\t" + end.code + "\n\treturn 0;\n}\n#endif\n"
	return g
}

// byShell reports whether a shell executes the program. It is a program of glibc: where it executes one of
// musl, call paths through musl's own functions are cut.
func byShell(seed uint64) bool { return seed%2 == 1 }

// replaceWord replaces a letter that is a word of its own.
func replaceWord(text, letter, by string) string {
	var out strings.Builder
	word := func(b byte) bool {
		return b == '_' || b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z' || b == '\''
	}
	for i := range len(text) {
		if text[i] == letter[0] && (i == 0 || !word(text[i-1])) && (i+1 == len(text) || !word(text[i+1])) {
			out.WriteString(by)
		} else {
			out.WriteByte(text[i])
		}
	}
	return out.String()
}

// TestGenerated records programs of steps in a random order, and compares live blocks and events of each step's
// function with what the step is known to allocate.
func TestGenerated(t *testing.T) {
	seeds := 1
	switch {
	case cmdtest.All():
		seeds = 100
	case cmdtest.Full():
		seeds = 2
	}
	for seed := range seeds {
		for _, musl := range []bool{false, true} {
			t.Run(fmt.Sprintf("seed %d, musl %v", seed, musl), func(t *testing.T) { testGenerated(t, uint64(seed), musl) })
		}
	}
}

func testGenerated(t *testing.T, seed uint64, musl bool) {
	g := generate(seed, musl)
	cc, language := "g++", "c++"
	if musl {
		cc, language = "musl-gcc", "c"
	}
	cmdtest.Need(t, cc)
	dir, err := os.MkdirTemp(shared, "generated")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // the program may give up its rights
		t.Fatal(err)
	}
	source, program, plugin := filepath.Join(dir, "program."+language), filepath.Join(dir, "program"), filepath.Join(dir, "plugin.so")
	if err := os.WriteFile(source, []byte(g.source), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"-o", program, "-rdynamic"}, {"-o", plugin, "-shared", "-fPIC", "-DPLUGIN"}} {
		args = append(args, "-x", language, source, "-g", "-O1", "-w", "-fno-builtin", "-pthread", "-Wl,--build-id")
		if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s\n%s", err, out, g.source)
		}
	}
	flags := [][]string{{"--events"}, {}, {"--at-peak"}, {"--addresses"}}[seed/2%4]
	args := append(flags, "--", program, plugin, "0")
	if byShell(seed) {
		args = append(flags, "--", "sh", "-c", `exec "$0" "$@"`, program, plugin, "0")
	}
	run := recorded(t, args...)
	if run.code != g.exit {
		t.Errorf("exit status %d, want %d: %s%s", run.code, g.exit, run.out, run.errs)
	}
	dumps := readPaths(t, run.file, false)
	last := dumps[len(dumps)-1]
	for i := range 15 {
		name := fmt.Sprintf("step%d", i)
		if got := through(last, name); got.Count != g.live[name].Count || got.Bytes != g.live[name].Bytes {
			t.Errorf("%s: %d blocks of %d bytes are live, want %d of %d", name, got.Count, got.Bytes, g.live[name].Count, g.live[name].Bytes)
		}
	}
	if seed/2%4 == 0 {
		ever := everThrough(t, run.file)
		for name, want := range g.ever {
			if got := ever[name]; got != want {
				t.Errorf("%s: %d allocations of %d bytes, want %d of %d", name, got.Count, got.Bytes, want.Count, want.Bytes)
			}
		}
	}
	if t.Failed() {
		t.Logf("%v\n%s%s", flags, g.source[len(generatedHead):], run.errs)
	}
}

// everThrough returns what the events of a recording allocate, by the steps in their call paths.
func everThrough(t *testing.T, file string) map[string]profile.Value {
	r, err := heaplog.Open(t.Context(), heaplog.Files(file))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	sums := map[string]profile.Value{}
	for it, err := range r.Items() {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range it.Events {
			if e.Kind != callpath.Allocated && e.Kind != callpath.Moved {
				continue
			}
			if name := innermostStep(e.Stack); name != "" {
				v := sums[name]
				sums[name] = profile.Value{Count: v.Count + 1, Bytes: v.Bytes + e.Size}
			}
		}
	}
	return sums
}

func innermostStep(stack []symbol.Addr) string {
	for _, a := range stack {
		for _, f := range a.Frames() {
			if strings.HasPrefix(f.Func, "step") {
				return f.Func
			}
		}
	}
	return ""
}
