/*
 * support.h: what all generated programs of the truth harness share.
 *
 * Each function notes in shadow[] that it is entered, by its number and the
 * address that it will return to, and takes that back when it leaves: so
 * shadow[] is the true call stack, whatever the backend under test says. A
 * function that ends in a call leaves before; whether its frame is still there
 * depends on the compiler, and is seen from where the function it calls returns to.
 */
#include "lwsbt.h"

#include <stdarg.h>

#ifdef FREESTANDING
long sys_write(int fd, const void *p, size_t n);
void sys_exit(int code) __attribute__((noreturn));
#define write sys_write
#define exit_now sys_exit
#else
/* not <unistd.h>, which clang has not for all machines */
long write(int fd, const void *p, size_t n);
void _exit(int code) __attribute__((noreturn));
#define exit_now _exit
#endif

#define NOINLINE __attribute__((noinline))
#ifndef BACKEND
#error "define BACKEND"
#endif

extern char __executable_start[], etext[];

struct three {
	int a[3];
};

/* ---------------------------------------------------------- the true stack */

struct entered {
	int id;		/* of f_ID; FUNCTIONS + 0: start, 1: probe, 2: main, 3: descend, 4: finish */
	int left;	/* it ended in a call, and may be gone */
	void *ra;	/* where it returns to, or NULL if not noted */
};

static struct entered shadow[1000];
static int top;

#ifdef IDS
#define ENTER(n) (shadow[top].id = (n), shadow[top].left = 0, shadow[top++].ra = NULL)
#else
#define ENTER(n) (shadow[top].id = (n), shadow[top].left = 0, \
	shadow[top++].ra = __builtin_return_address(0))
#endif
#define LEAVE() leave()
#define LEAVE_BY_TAIL_CALL() (shadow[top - 1].left = 1)

static inline void leave(void)
{
	top--;
	while (top > 0 && shadow[top - 1].left)
		top--;
}

/* ------------------------------------------------------------------- output */

static char line[16000];
static size_t length;

static void flush(void)
{
	size_t at = 0;
	long n;

	line[length++] = '\n';
	while (at < length && (n = (long)write(1, line + at, length - at)) > 0)
		at += (size_t)n;
	length = 0;
}

static void put(char c)
{
	if (length < sizeof line - 1)
		line[length++] = c;
}

static void put_hex(uintptr_t v)
{
	int shift = 8 * (int)sizeof v - 4;

	while (shift > 0 && v >> shift == 0)
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		put("0123456789abcdef"[v >> shift & 15]);
}

/* ------------------------------------------------------------------ helpers */

static uint32_t state = 12345;

NOINLINE static int random_n(int n)
{
	state = state * 1664525u + 1013904223u;
	return (int)((state >> 8) % (unsigned)n);
}

NOINLINE static uintptr_t random_word(void)
{
	uintptr_t v = 0;

	for (unsigned i = 0; i < sizeof v; i++)
		v = v << 8 | (uintptr_t)random_n(256);
	return v;
}

NOINLINE void fill(char *p, size_t n)
{
	for (size_t i = 0; i < n; i += 7)
		p[i] = (char)(i + state);
	p[n / 2] = 1;
	p[3] = 2;
}

typedef int (*int_fn)(int);

NOINLINE static int_fn opaque(int_fn f)
{
	__asm__ volatile("" : "+r"(f));
	return f;
}

int probe(int a);

/* The last capture, from a function that never returns: the address after its
 * call is perhaps another function's. */
#define LAST 400

__attribute__((noinline, noreturn)) static void finish(int r);

/* -------------------------------------------------------------------- probe */

#define MAX 300

static uintptr_t pcs[MAX], again[MAX], few[5];
static struct lwsbt_capture_ctx ctx, cached;
static struct lwsbt_rule rules[32];	/* few enough for some to be replaced */
static int captures, corrupt;
static uintptr_t saved[200000];

size_t BACKEND(uintptr_t *, size_t, size_t, const struct lwsbt_capture_ctx *);

/* Reports a fault unless the n addresses captured otherwise are those captured from
 * the given one on. */
static void expect(const uintptr_t *got, size_t n, size_t want, size_t from, char fault)
{
	size_t i;

	for (i = 0; i < n && got[i] == pcs[i + from]; i++)
		;
	if (i == n && n == want)
		return;
	put('!');
	put(fault);
	flush();
}

/* Captures while the stack of all callers but the nearest has random words in it:
 * some of any value, some in the stack or the code, where they do the most harm. */
NOINLINE static void capture_corrupted(uintptr_t from, uintptr_t to)
{
	uintptr_t *word = (uintptr_t *)from, v;
	size_t n = (to - from) / sizeof *word, i;
	int percent = 1 + random_n(60);

	if (n > sizeof saved / sizeof *saved)
		n = sizeof saved / sizeof *saved;
	for (i = 0; i < n; i++)
		saved[i] = word[i];
	for (i = 0; i < n; i++) {
		if (random_n(100) >= percent)
			continue;
		v = random_word();
		switch (random_n(5)) {
		case 0:
			v = from + v % (to - from);
			break;
		case 1:
			v = from + v % (to - from) / sizeof v * sizeof v;
			break;
		case 2:
			v = ctx.code_lo + v % (ctx.code_hi - ctx.code_lo);
			break;
		case 3:
			v = saved[random_word() % n];
			break;
		}
		word[i] = v;
	}
	cached.lo = ctx.lo;
	v = BACKEND(pcs, MAX, 1, &ctx);
	i = BACKEND(again, MAX, 1, &cached);
	expect(again, i, v, 0, 'c');
	for (i = 0; i < n; i++)
		word[i] = saved[i];
	put('k');
	put(' ');
	put_hex(v);
	flush();
}

NOINLINE int probe(int a)
{
	size_t n, m, k, i;
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);

	ENTER(FUNCTIONS + 1);
	captures++;
	ctx.lo = frame - 8192;
	n = BACKEND(pcs, MAX, 0, &ctx);
	m = BACKEND(few, 5, 3, &ctx);
	cached.lo = ctx.lo;
	k = BACKEND(again, MAX, 1, &cached);
	put('t');
	for (int k = top - 1; k >= 0; k--) {
		put(' ');
		put_hex((uintptr_t)shadow[k].id);
		put(':');
		put_hex((uintptr_t)shadow[k].ra);
		if (shadow[k].left)
			put('L');
	}
	flush();
	put('c');
	for (i = 0; i < n; i++) {
		put(' ');
		put_hex(pcs[i]);
	}
	flush();
	expect(few, m, n < 3 ? 0 : n - 3 > 5 ? 5 : n - 3, 3, 's');
	expect(again, k, n < 1 ? 0 : n - 1, 1, 'c');
	if (corrupt)
		capture_corrupted((frame + 512) & ~(uintptr_t)15, ctx.hi);
	LEAVE();
	return a + 1;
}

static void finish(int r)
{
	ENTER(FUNCTIONS + 4);
	r = probe(r);
	put('e');
	flush();
	for (;;)
		exit_now(r != r);
}

NOINLINE int start(int a);

NOINLINE static int descend(int n)
{
	int r;

	ENTER(FUNCTIONS + 3);
	r = start(n);
	LEAVE();
	return r + 1;
}

int main(void)
{
	volatile int run;

	ctx.hi = (uintptr_t)__builtin_frame_address(0) + 64;
	ctx.code_lo = (uintptr_t)__executable_start;
	ctx.code_hi = (uintptr_t)etext;
#ifdef TABLE
	ctx.functions = lwsbt_function_table();
#endif
	cached = ctx;
	cached.rules = rules;
	cached.rule_count = sizeof rules / sizeof *rules;
	for (run = 0; run < RUNS; run++) {
#ifndef TRUSTS
		corrupt = run % 4 == 3;
#endif
		state = 77u * (uint32_t)run + 5u;
		shadow[0].id = FUNCTIONS + 2;
		top = 1;
		descend(run);
	}
	put('e');
	flush();
	exit_now(0);
	return 0;
}
