/*
 * Time of the encoder and decoder beside those of the real libwebsockets, in turns:
 * the best of many rounds of each. Stacks on standard input, a line each: the size, then
 * addresses, in hex.
 */
#include <libwebsockets.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lwsbt.h"

enum { STACKS = 4096, ROUNDS = 60 };

/* Apart, as each is read apart: a run should not wait for memory. */
static struct lwsbt_stack *stacks;
static lws_backtrace_info_t *infos;
static struct blob {
	uint8_t *p;
	size_t len;
} *ours, *theirs;
static size_t n;
static volatile uintptr_t sink;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* What lws_alloc_metadata_gen does once it has the stack. */
static size_t lws_encode(size_t i, uint8_t *buf)
{
	lws_backtrace_comp_t c;
	unsigned bits = lws_sigbits(infos[i].asize);
	size_t len;

	lws_backtrace_compression_stream_init(&c, buf, LWSBT_BLOB_MAX);
	lws_backtrace_compress_backtrace(&infos[i], &c);
	lws_backtrace_compression_stream(&c, bits, 6);
	lws_backtrace_compression_stream(&c, infos[i].asize, bits);
	len = (c.pos + 7) / 8 + 2;
	buf[len - 2] = (uint8_t)(len >> 8);
	buf[len - 1] = (uint8_t)len;
	return len;
}

static void run_lws_encode(void)
{
	uint8_t buf[LWSBT_BLOB_MAX];

	for (size_t i = 0; i < n; i++)
		sink += lws_encode(i, buf);
}

static void run_encode(unsigned how)
{
	uint8_t buf[LWSBT_BLOB_MAX + 8];

	for (size_t i = 0; i < n; i++)
		sink += lwsbt_encode(buf, sizeof buf, &stacks[i], how);
}

static void run_encode_lws(void) { run_encode(LWSBT_SEARCH_LWS); }
static void run_encode_best(void) { run_encode(LWSBT_SEARCH_BEST); }

static void run_lws_decode(void)
{
	lws_backtrace_info_t si;

	for (size_t i = 0; i < n; i++) {
		lws_alloc_metadata_parse(&si, theirs[i].p + theirs[i].len);
		sink += si.asize;
	}
}

static void run_decode(void)
{
	struct lwsbt_stack s;

	for (size_t i = 0; i < n; i++) {
		lwsbt_decode(&s, ours[i].p, ours[i].len, 64);
		sink += s.size;
	}
}

int main(void)
{
	static void (*const runs[])(void) = { run_lws_encode, run_encode_lws, run_encode_best,
		run_lws_decode, run_decode };
	double best[5] = { 0 };
	static char line[1024];

	stacks = calloc(STACKS, sizeof *stacks);
	infos = calloc(STACKS, sizeof *infos);
	ours = calloc(STACKS, sizeof *ours);
	theirs = calloc(STACKS, sizeof *theirs);
	if (!stacks || !infos || !ours || !theirs)
		return 1;
	for (; n < STACKS && fgets(line, sizeof line, stdin); n++) {
		struct lwsbt_stack *s = &stacks[n];
		lws_backtrace_info_t *si = &infos[n];
		uint8_t buf[LWSBT_BLOB_MAX];
		char *p;

		s->size = strtoul(line, &p, 16);
		si->asize = s->size;
		while (*p && *p != '\n' && s->depth < 31) {
			s->pc[s->depth] = strtoul(p, &p, 16);
			si->st[s->depth] = s->pc[s->depth];
			s->depth++;
		}
		si->sp = (uint8_t)s->depth;
		theirs[n].len = lws_encode(n, buf);
		theirs[n].p = memcpy(malloc(theirs[n].len), buf, theirs[n].len);
		ours[n].len = lwsbt_encode(buf, sizeof buf, s, LWSBT_SEARCH_LWS);
		ours[n].p = memcpy(malloc(ours[n].len), buf, ours[n].len);
		if (ours[n].len != theirs[n].len) {
			fprintf(stderr, "bench: a blob of %zu bytes, where lws has %zu\n", ours[n].len, theirs[n].len);
			return 1;
		}
	}
	if (n == 0) {
		fputs("bench: no stacks on standard input\n", stderr);
		return 2;
	}
	lws_set_log_level(0, NULL);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < 5; i++) {
			double t = now();

			runs[i]();
			t = (now() - t) / (double)n;
			if (round > 0 && (best[i] == 0 || t < best[i]))
				best[i] = t;
		}
	}
	printf("%.1f %.1f %.1f %.1f %.1f\n", best[0], best[1], best[2], best[3], best[4]);
	return 0;
}
