/*
 * A program whose malloc is wrapped: allocates in every way there is, and dumps
 * what is live. See docs/device.md for how it is built.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef LWSBT_WRAP_ALIGNED
#include <malloc.h>
#endif

#include "lwsbt.h"

extern struct lwsbt_heap lwsbt_wrapped;

static void put(void *arg, const char *text, size_t len) { fwrite(text, 1, len, arg); }

static void *keep(void *p)
{
	if (!p) {
		fputs("no memory\n", stderr);
		exit(1);
	}
	memset(p, 1, 1);
	return p;
}

/* Each leaks one block, of a size of its own. */
void leak_malloc(void) { keep(malloc(1001)); }
void leak_calloc(void) { keep(calloc(7, 143)); }
void leak_realloc(void) { keep(realloc(keep(malloc(10)), 1002)); }
void leak_strdup(void) { keep(strdup("a text of 1003 bytes it is not")); }

#ifdef LWSBT_WRAP_ALIGNED
void leak_aligned(void)
{
#ifndef NO_POSIX_MEMALIGN
	void *p;

	if (posix_memalign(&p, 4096, 1005) != 0)
		exit(1);
	keep(p);
#endif
	keep(memalign(64, 1004));
	keep(aligned_alloc(128, 1024));
}
#endif

int main(void)
{
	static char buffer[BUFSIZ];
	const struct lwsbt_out out = { put, stdout };

	setvbuf(stdout, buffer, _IOFBF, sizeof buffer); /* no buffer from malloc */
	for (int i = 0; i < 100; i++) { /* these come back */
		char *p = keep(malloc((size_t)i * 10 + 1));

		p = keep(realloc(p, (size_t)i * 20 + 2));
		free(p);
		free(strdup("x"));
	}
	leak_malloc();
	leak_calloc();
	leak_realloc();
	leak_strdup();
#ifdef LWSBT_WRAP_ALIGNED
	leak_aligned();
#endif
	lwsbt_dump(&lwsbt_wrapped, &out, 1, "request", LWSBT_KEEP_ADDRESS);
	return lwsbt_wrapped.damaged != 0;
}
