/*
 * Functions of the C library that the hooks call, here without vector registers: see program.c.
 * They are not exported.
 */
#if defined(__x86_64__) && defined(__LP64__)
#include <string.h>

/* Compilers make a call of strlen from a loop that does the same. */
#define OPAQUE(p) __asm__("" : "+r"(p))

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	void *start = to;

	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
	return start;
}

void *memset(void *to, int c, size_t n)
{
	void *start = to;

	__asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(c) : "memory");
	return start;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const unsigned char *p = a, *q = b;

	for (; n && *p == *q; n--, p++, q++)
		OPAQUE(p);
	return n ? *p - *q : 0;
}

size_t strlen(const char *s)
{
	const char *end = s;

	for (; *end; end++)
		OPAQUE(end);
	return (size_t)(end - s);
}
#else
typedef int nothing; /* a file has a declaration */
#endif
