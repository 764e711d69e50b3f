// Prints call stacks of itself as they are: a line a stack, outermost last, all
// return addresses, found along frame pointers. First line: where main is, and
// where enter in the library is. Built with -DLIB, it is that library.
#include <stdio.h>

#define N 24
typedef int fn(int);
extern fn *const NAME(table)[N];
int callback(int);

#define noinline __attribute__((noinline))
#ifdef LIB
#define PREFIX(x) lib_##x
#else
#define PREFIX(x) app_##x
#endif

int report(void);

static unsigned state = 12345;
static unsigned next(void) { return (state = state * 1103515245 + 12345) >> 16; }

#define F(n, a, b) \
	int PREFIX(a)(int); int PREFIX(b)(int); \
	noinline int PREFIX(n)(int d) \
	{ \
		int s = report(); \
		if (d <= 0) \
			return s; \
		switch (next() % 4) { \
		case 0: s += PREFIX(a)(d - 1); break; \
		case 1: s -= PREFIX(b)(d - 2); break; \
		case 2: s ^= NAME(table)[next() % N](d - 1); break; \
		default: s += callback(d - 3) * 3; break; \
		} \
		return s + report(); \
	}

F(f0, f1, f5) F(f1, f2, f7) F(f2, f3, f11) F(f3, f4, f13) F(f4, f5, f17) F(f5, f6, f19)
F(f6, f7, f23) F(f7, f8, f2) F(f8, f9, f3) F(f9, f10, f5) F(f10, f11, f7) F(f11, f12, f1)
F(f12, f13, f0) F(f13, f14, f4) F(f14, f15, f6) F(f15, f16, f8) F(f16, f17, f9) F(f17, f18, f10)
F(f18, f19, f12) F(f19, f20, f14) F(f20, f21, f15) F(f21, f22, f16) F(f22, f23, f18) F(f23, f0, f20)

fn *const NAME(table)[N] = {
	PREFIX(f0), PREFIX(f1), PREFIX(f2), PREFIX(f3), PREFIX(f4), PREFIX(f5), PREFIX(f6), PREFIX(f7),
	PREFIX(f8), PREFIX(f9), PREFIX(f10), PREFIX(f11), PREFIX(f12), PREFIX(f13), PREFIX(f14), PREFIX(f15),
	PREFIX(f16), PREFIX(f17), PREFIX(f18), PREFIX(f19), PREFIX(f20), PREFIX(f21), PREFIX(f22), PREFIX(f23),
};

#ifdef LIB
int enter(int d) { return NAME(table)[d % N](d) + 1; }
#else
int enter(int);
static void **top;
static int lines;

noinline int report(void)
{
	void **fp = __builtin_frame_address(0);
	if (++lines > 4000)
		return 0;
	for (int n = 0; n < 30; n++) {
		printf("%s%lx", n ? " " : "", (unsigned long)fp[1]);
		if (fp == top)
			break;
		fp = fp[0];
	}
	putchar('\n');
	return lines;
}

noinline int callback(int d)
{
	return d > 0 ? enter(d - 1) + 1 : report();
}

int main(void)
{
	int s = 0;
	top = __builtin_frame_address(0);
	printf("%lx %lx\n", (unsigned long)main, (unsigned long)enter);
	for (int i = 0; i < 40; i++)
		s += NAME(table)[i % N](12) + enter(i % 9);
	return s == 7;
}
#endif
