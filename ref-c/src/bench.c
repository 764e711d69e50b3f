/* Mode bench: nanoseconds per stack, by depth. */
#include "btref.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct sample {
	struct stack s;
	lws_backtrace_info_t si;
	uint8_t blob[MAX_BLOB];
	size_t len;
};

enum { ROUNDS = 7 };	/* measurements; the best counts */

static volatile uintptr_t sink;

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The work of lws_alloc_metadata_gen() after it captured the stack. */
static void
encode_once(const struct sample *x)
{
	uint8_t buf[MAX_BLOB];
	lws_backtrace_comp_t c;
	unsigned int bits;
	size_t len;

	lws_backtrace_compression_stream_init(&c, buf, sizeof(buf));
	/* its parameter is not const, but it does not write there */
	lws_backtrace_compress_backtrace((lws_backtrace_info_t *)(uintptr_t)&x->si, &c);
	bits = lws_sigbits((uintptr_t)x->s.size);
	lws_backtrace_compression_stream(&c, bits, 6);
	lws_backtrace_compression_stream(&c, (uintptr_t)x->s.size, bits);
	len = (c.pos + 7) / 8 + 2;
	buf[len - 2] = (uint8_t)(len / 256);
	buf[len - 1] = (uint8_t)(len % 256);
	sink += buf[len - 3];
}

static void
decode_once(const struct sample *x)
{
	lws_backtrace_info_t si;

	lws_alloc_metadata_parse(&si, x->blob + x->len);
	sink += si.asize;
}

/* Returns the best of ROUNDS rounds in ns per call; seconds is the length of a round. */
static double
measure(void (*once)(const struct sample *), const struct sample *x, size_t n, double seconds)
{
	double best = 0;
	int round;

	for (round = -1; round < ROUNDS; round++) {	/* round -1 warms up */
		double from = now(), took;
		size_t calls = 0, i;

		do {
			for (i = 0; i < n; i++)
				once(&x[i]);
			calls += n;
			took = now() - from;
		} while (took < seconds);
		took = took * 1e9 / (double)calls;
		if (round >= 0 && (round == 0 || took < best))
			best = took;
	}
	return best;
}

static int
by_depth(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	return x->s.depth - y->s.depth;
}

int
mode_bench(int argc, char **argv)
{
	struct stacks in = { stdin, 0, NULL, 0 };
	struct sample *x = NULL;
	size_t n = 0, cap = 0, i, k;
	double seconds = 1;
	int got = -1;
	struct stack s;

	if (argc == 2 && !strcmp(argv[0], "--seconds")) {
		char *end;

		seconds = strtod(argv[1], &end);
		if (*end || end == argv[1] || !(seconds > 0 && seconds <= 3600)) {
			fprintf(stderr, "btref bench: --seconds over 0 and up to 3600 was "
				"expected, not %s\n", argv[1]);
			return EXIT_USAGE;
		}
	} else if (argc) {
		fprintf(stderr, "btref bench: --seconds S was expected, not %s\n", argv[0]);
		return EXIT_USAGE;
	}

	while ((got = stacks_next(&in, &s)) > 0) {
		if (n == cap) {
			cap = cap ? cap * 2 : 256;
			x = realloc(x, cap * sizeof(*x));
			if (!x) {
				perror("btref bench");
				return EXIT_SELF;
			}
		}
		memset(&x[n], 0, sizeof(x[n]));
		x[n].s = s;
		x[n].si.sp = (uint8_t)s.depth;
		for (i = 0; i < (size_t)s.depth; i++)
			x[n].si.st[i] = (uintptr_t)s.pcs[i];
		x[n].len = lib_encode(x[n].blob, &s);
		n++;
	}
	stacks_free(&in);
	if (got < 0) {
		free(x);
		return EXIT_USAGE;
	}
	if (!n) {
		fprintf(stderr, "btref bench: no stacks on standard input; lines of "
			"ID<TAB>size<TAB>addresses were expected\n");
		return EXIT_USAGE;
	}

	lws_set_log_level(0, NULL);
	for (i = k = 0; i < n; i++) {
		lws_backtrace_info_t si;

		k += lws_alloc_metadata_parse(&si, x[i].blob + x[i].len) || si.sp != x[i].s.depth;
	}
	if (k)
		fprintf(stderr, "btref bench: the library fails to decode %lu of the %lu blobs that it "
			"wrote; its time for them is that of failing\n", (unsigned long)k,
			(unsigned long)n);
	qsort(x, n, sizeof(*x), by_depth);
	for (i = 0; i < n; i = k) {
		double enc, dec, slice = seconds / 2 / (ROUNDS + 1);

		for (k = i; k < n && x[k].s.depth == x[i].s.depth; k++)
			;
		enc = measure(encode_once, &x[i], k - i, slice);
		dec = measure(decode_once, &x[i], k - i, slice);
		printf("depth=%d stacks=%lu encode_ns=%.1f decode_ns=%.1f\n", x[i].s.depth,
		       (unsigned long)(k - i), enc, dec);
		fflush(stdout);
	}
	free(x);

	return EXIT_OK;
}
