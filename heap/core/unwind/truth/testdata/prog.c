/* A program that is hard to unwind. It runs for ever, so that a debugger can stop it
 * anywhere, as often as it likes. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))

volatile unsigned t_sink, t_zero;
unsigned t_seed = 1;
extern unsigned g_entry(unsigned x, int depth);

NOINLINE unsigned t_rand(void)
{
	t_seed = t_seed * 1103515245u + 12345u;
	return t_seed >> 16 & 0x7fff;
}

NOINLINE static void t_die(const char *why)
{
	fputs(why, stderr);
	abort();
}

NOINLINE unsigned t_leaf(unsigned x) { return x * 2654435761u ^ x >> 3; }

NOINLINE unsigned t_rec(unsigned n, unsigned x)
{
	if (n == 0)
		return t_leaf(x);
	return t_rec(n - 1, x + n) ^ t_leaf(n);
}

NOINLINE unsigned t_odd(unsigned n);
NOINLINE unsigned t_even(unsigned n) { return n == 0 ? 1 : t_odd(n - 1) + t_sink; }
NOINLINE unsigned t_odd(unsigned n) { return n == 0 ? 0 : t_even(n - 1) ^ t_zero; }

NOINLINE unsigned t_sum(unsigned n, ...)
{
	va_list ap;
	unsigned s = 0;
	va_start(ap, n);
	for (unsigned i = 0; i < n; i++)
		s += t_leaf(va_arg(ap, unsigned));
	va_end(ap);
	return s;
}

NOINLINE unsigned t_alloca(unsigned n)
{
	char *p = __builtin_alloca(n % 300 + 1);
	memset(p, (int)n, n % 300 + 1);
	unsigned s = t_rec(n % 3, (unsigned)p[n % 300]);
	return s + (unsigned)p[0];
}

NOINLINE unsigned t_vla(unsigned n)
{
	unsigned s = 0;
	for (unsigned i = 1; i < 4; i++) {
		unsigned a[n % 50 + i];
		for (unsigned k = 0; k < n % 50 + i; k++)
			a[k] = t_leaf(k);
		s += a[i] + t_alloca(a[0] % 100);
	}
	return s;
}

NOINLINE unsigned t_big(unsigned n)
{
	char buf[9000];
	memset(buf, (int)n, 100);
	return t_rec(2, (unsigned)buf[n % 100]) + (unsigned)buf[3];
}

NOINLINE unsigned t_huge(unsigned n)
{
	char buf[70000];
	buf[n % 70000] = (char)n;
	buf[0] = 1;
	return t_big(n) + (unsigned)buf[n % 70000];
}

struct t_s { unsigned v[6]; double d; };

NOINLINE struct t_s t_struct(unsigned n, struct t_s in)
{
	in.v[n % 6] += t_leaf(n);
	in.d *= 1.5;
	return in;
}

NOINLINE double t_many(int a, int b, double c, int d, unsigned e, double f, unsigned g, unsigned h, unsigned i, unsigned j)
{
	struct t_s s = {{(unsigned)a, (unsigned)b, (unsigned)d, e, g, h}, c * f};
	s = t_struct(i, s);
	return s.d + s.v[j % 6] + t_sum(5, i, j, e, g, h);
}

NOINLINE unsigned t_switch(unsigned n)
{
	switch (n % 12) {
	case 0: return t_leaf(n) + 1;
	case 1: return t_rec(2, n) + t_sink;
	case 2: t_sink = n; return t_sum(2, n, n) * 3;
	case 3: return t_even(5) + t_leaf(n);
	case 4: return t_alloca(n) ^ 5;
	case 5: t_sink += t_leaf(3); return t_leaf(t_leaf(n)) + 7;
	case 6: return t_big(n) - 2;
	case 7: { unsigned s = t_leaf(n); for (unsigned i = 0; i < 4; i++) s ^= t_leaf(i + s); return s; }
	case 8: return t_vla(n) | 1;
	case 9: return t_many(1, 2, 3.0, 4, n, 5.0, 6, 7, n, 8) > 3 ? 1 : t_leaf(n);
	case 10: return (unsigned)strlen("x") + t_rec(n % 4, 1);
	default: return t_huge(n) + 1;
	}
}

NOINLINE static int t_cmp(const void *a, const void *b)
{
	unsigned x = t_leaf(*(const unsigned *)a), y = t_leaf(*(const unsigned *)b);
	return (x > y) - (x < y);
}

NOINLINE unsigned t_sort(unsigned n)
{
	unsigned a[20];
	for (unsigned i = 0; i < 20; i++)
		a[i] = n + i * 7;
	qsort(a, 20, sizeof a[0], t_cmp);
	return a[n % 20];
}

NOINLINE unsigned t_tail2(unsigned n) { return t_rec(n % 3, n) + 1; }
NOINLINE unsigned t_tail1(unsigned n) { t_sink = n; return t_tail2(n + 1); }
NOINLINE unsigned t_tail0(unsigned n) { return n & 1 ? t_tail1(n) : t_switch(n); }

NOINLINE unsigned t_wrap(unsigned n)
{
	if (n % 3 == 0) /* no frame on this path */
		return n + 1;
	unsigned a = t_leaf(n), b = t_leaf(a), c = t_leaf(b);
	t_sink = a;
	for (unsigned i = 0; i < 3; i++)
		a += t_leaf(b + i) * c;
	return a + b * c + t_tail0(n);
}

NOINLINE unsigned t_aligned(unsigned n)
{
	unsigned v[16] __attribute__((aligned(64)));
	for (unsigned i = 0; i < 16; i++)
		v[i] = n + i;
	t_sink = (unsigned)(size_t)v;
	return t_leaf(v[n % 16]) + t_rec(1, v[3]);
}

NOINLINE unsigned t_check(unsigned n)
{
	if (t_zero)
		t_die("never\n");
	unsigned r = t_wrap(n);
	if (r == 0x12345678 && t_zero) {
		t_sink = t_leaf(r);
		t_die("nor this\n");
	}
	return r;
}

static jmp_buf t_env;

NOINLINE static void t_jump(unsigned n)
{
	if (n % 2)
		longjmp(t_env, 1);
	t_sink = t_leaf(n);
}

NOINLINE unsigned t_setjmp(unsigned n)
{
	volatile unsigned r = n;
	if (setjmp(t_env) == 0) {
		t_jump(n);
		r += 1;
	}
	return t_leaf(r);
}

NOINLINE unsigned t_format(unsigned n)
{
	char buf[100];
	snprintf(buf, sizeof buf, "%u %s %x", n, "some text", t_leaf(n));
	return (unsigned)strlen(buf) + t_leaf((unsigned)buf[2]);
}

static unsigned (*const t_table[])(unsigned) = { t_leaf, t_alloca, t_vla, t_big, t_switch, t_sort, t_tail0,
	t_wrap, t_aligned, t_check, t_setjmp, t_format, t_tail1, t_huge, t_even };

NOINLINE unsigned t_call(unsigned n)
{
	unsigned k = n % (sizeof t_table / sizeof t_table[0]);
	return t_table[k](k == 14 ? n % 9 : n) + 1;
}

NOINLINE static void t_handler(int sig)
{
	t_sink += t_rec(2, (unsigned)sig) + t_check(t_sink);
}

/* What is called on the alternate stack alone, so that some stops are there for certain. */
NOINLINE unsigned t_alternate2(unsigned n) { return n == 0 ? t_leaf(n) : t_alternate2(n - 1) + t_sink; }

NOINLINE unsigned t_alternate1(unsigned n)
{
	char buf[300];
	memset(buf, (int)n, sizeof buf);
	return t_alternate2(n % 3) + (unsigned)buf[n % 300];
}

NOINLINE static void t_alternate(int sig, siginfo_t *info, void *context)
{
	(void)info;
	(void)context;
	t_sink += t_alternate1((unsigned)sig) + t_alloca(t_sink);
	t_sink += t_rec(2, t_sink) + g_entry(t_rand(), 0);
}

NOINLINE unsigned t_signal(unsigned n)
{
	if (n % 8 == 0)
		raise(SIGUSR1);
	else if (n % 8 == 4)
		raise(SIGUSR2);
	return t_call(n);
}

static void t_stacks(void)
{
	static char stack[1 << 17];
	stack_t ss;
	struct sigaction sa;
	memset(&ss, 0, sizeof ss);
	ss.ss_sp = stack;
	ss.ss_size = sizeof stack;
	sigaltstack(&ss, NULL);
	memset(&sa, 0, sizeof sa);
	sa.sa_sigaction = t_alternate;
	sa.sa_flags = SA_ONSTACK | SA_SIGINFO;
	sigaction(SIGUSR2, &sa, NULL);
}

int main(void)
{
	signal(SIGUSR1, t_handler);
	t_stacks();
	raise(SIGUSR2);
	for (unsigned i = 0;; i++) {
		t_sink = t_signal(t_rand());
		t_sink += t_call(t_rand());
		t_sink += g_entry(t_rand(), 0);
		if (i == 0xffffffff && t_zero)
			break;
	}
	return 0;
}
