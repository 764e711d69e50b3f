/*
 * A program that fragments its heap: small sessions stay between large buffers that come and go.
 * Its malloc is wrapped. See heap/docs/btheap.md for how it is built.
 */
#include <stdio.h>
#include <stdlib.h>

#include "lwsbt.h"

extern struct lwsbt_heap lwsbt_wrapped;

static void put(void *arg, const char *text, size_t len) { fwrite(text, 1, len, arg); }

static void *keep(void *p)
{
	if (!p) {
		fputs("no memory\n", stderr);
		exit(1);
	}
	return p;
}

static void *volatile buffers[64], *volatile sessions[64];

__attribute__((noinline)) void receive(int i) { buffers[i] = keep(malloc(1000)); }
__attribute__((noinline)) void session(int i) { sessions[i] = keep(malloc(40)); }

int main(void)
{
	static char buffer[BUFSIZ];
	const struct lwsbt_out out = { put, stdout };

	setvbuf(stdout, buffer, _IOFBF, sizeof buffer); /* no buffer from malloc */
	lwsbt_head_boot(&out, "fragment", LWSBT_NONE, LWSBT_NONE);
	for (int i = 0; i < 64; i++) {
		receive(i);
		if (i % 8 == 7)
			session(i);
	}
	for (uint32_t dump = 0; dump < 4; dump++) {
		lwsbt_dump(&lwsbt_wrapped, &out, dump, "request", LWSBT_KEEP_ADDRESS);
		for (int i = 0; i < 64; i++)
			if (i % 4 == (int)dump && i != 0)
				free(buffers[i]);
	}
	return lwsbt_wrapped.damaged != 0;
}
