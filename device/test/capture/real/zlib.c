/* zlib.c: compresses and decompresses at several levels and strategies. */
#include <stdlib.h>

#include "real.h"
#include "zlib.h"

static unsigned char text[20000], packed[40000], back[20000];

/* Calls deflate or inflate with little space each time. */
static void in_pieces(z_stream *z, int (*step)(z_stream *, int), unsigned char *in, size_t n, unsigned char *out, size_t cap)
{
	z->next_in = in;
	z->next_out = out;
	while (z->total_out < cap) {
		z->avail_in = n - z->total_in < 700 ? (unsigned)(n - z->total_in) : 700;
		z->avail_out = cap - z->total_out < 900 ? (unsigned)(cap - z->total_out) : 900;
		if (step(z, z->total_in + z->avail_in == n ? Z_FINISH : Z_SYNC_FLUSH) != Z_OK)
			break;
	}
}

void drive(void)
{
	static const int strategies[] = {Z_DEFAULT_STRATEGY, Z_FILTERED, Z_HUFFMAN_ONLY, Z_RLE, Z_FIXED};
	unsigned state = 1, i;
	int level, strategy;

	for (i = 0; i < sizeof text; i++) {
		state = state * 1664525u + 1013904223u;
		text[i] = i % 97 < 60 && i > 500 ? text[i - 300 - state % 7] : (unsigned char)('a' + (state >> 24) % 20);
	}
	for (level = 0; level <= 9; level++) {
		for (strategy = 0; strategy < 5; strategy++) {
			z_stream z = {0};
			uLong n;

			if (deflateInit2(&z, level, Z_DEFLATED, strategy % 2 ? 31 : 15, 8, strategies[strategy]) != Z_OK)
				return;
			deflateSetDictionary(&z, text, 100);
			in_pieces(&z, deflate, text, sizeof text, packed, sizeof packed);
			n = z.total_out;
			deflateEnd(&z);
			z = (z_stream){0};
			if (inflateInit2(&z, 47) != Z_OK)
				return;
			z.next_in = packed;
			in_pieces(&z, inflate, packed, n, back, sizeof back);
			inflateSetDictionary(&z, text, 100);
			inflateEnd(&z);
		}
		uLongf n = sizeof packed, m = sizeof back;

		compress2(packed, &n, text, sizeof text, level);
		uncompress(back, &m, packed, n);
	}
}
