/* removed.c: a function that --gc-sections removes is longer than the code before kept, and has an inlined call there. */
__asm__(".section .text.startup,\"ax\"\n.type vectors, @object\nvectors: .space 64\n.size vectors, 64\n.text");
extern const char vectors[];

static inline __attribute__((always_inline)) int inner(int n)
{
	for (int i = 0; i < n; i++)
		n = n * i ^ n >> i;
	return n;
}

int removed(int n)
{
	n = inner(n);
	n += inner(n + 1) * inner(n + 2);
	return inner(n * n) * inner(n + 3) * inner(n + 4);
}

__attribute__((noinline)) int kept(int n)
{
	return n * n + 3;
}

int begin(int n)
{
	return kept(n) + kept(n + 1) + vectors[n];
}
