/*
 * For libFuzzer (clang): all readers, on input of exact size; what they accept, written
 * again, has to be read as the same.
 *
 *   make -C device fuzz && device/build/fuzz -max_len=400 -max_total_time=60
 */
#include <stdlib.h>
#include <string.h>

#include "lwsbt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int condition)
{
	if (!condition)
		abort();
}

static int same(const struct lwsbt_stack *a, const struct lwsbt_stack *b)
{
	return a->depth == b->depth && a->size == b->size && !memcmp(a->pc, b->pc, a->depth * sizeof *a->pc);
}

/* again encodes s by each search, into memory of the exact size, and reads it back. */
static void again(const struct lwsbt_stack *s)
{
	size_t lws = 0;

	for (unsigned how = 0; how < 4; how++) {
		size_t len = lwsbt_encode(NULL, 0, s, how), cap = len - (how & 1);
		uint8_t *blob = malloc(cap);
		struct lwsbt_stack t;

		check(len >= LWSBT_BLOB_MIN && len <= LWSBT_BLOB_MAX);
		check(lwsbt_encode(blob, cap, s, how) == len); /* also where it does not fit */
		if (cap == len) {
			enum lwsbt_result e = lwsbt_decode(&t, blob, len, LWSBT_WORD_BITS);

			check(e == LWSBT_OK && t.depth == s->depth);
			check((how & LWSBT_WRAP64) || same(s, &t));
		}
		if (how == LWSBT_SEARCH_BEST)
			lws = len;
		else if (how == LWSBT_SEARCH_LWS)
			check(lws <= len); /* best is the shortest */
		free(blob);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *exact = malloc(size), *blob = malloc(size);
	struct lwsbt_stack s, t;
	unsigned announced, tag;
	int sized;
	size_t n, pos;
	uint64_t v;

	if (size)
		memcpy(exact, data, size);
	/* with a length that is right, if there is space for one, so that more is read */
	for (int right = 0; right < 2; right++) {
		if (right && size >= 2) {
			exact[size - 2] = (uint8_t)(size >> 8);
			exact[size - 1] = (uint8_t)size;
		}
		for (unsigned word = 32; word <= 64; word += 32) {
			if (lwsbt_decode(&s, exact, size, word) == LWSBT_OK) {
				check(s.depth <= LWSBT_DEPTH_MAX && s.end <= 8 * (size - 2));
				check(lwsbt_decode_at_end(&t, exact + size, size, word, NULL, NULL) == LWSBT_OK && same(&s, &t));
				again(&s);
				pos = s.end;
				while (lwsbt_user(exact, size, &pos, &tag, &v) == LWSBT_OK && tag)
					check(pos <= 8 * (size - 2));
			} else {
				check(s.depth == 0 && s.size == 0);
			}
			lwsbt_decode_at_end(&s, size ? exact + size : exact, size, word, NULL, NULL);
		}
		lwsbt_salvage(&s, exact, size, size % 2 ? 32 : 64, &announced, &sized);
		check(s.depth <= announced && announced <= LWSBT_DEPTH_MAX);
	}
	if (size)
		memcpy(exact, data, size);
	for (int lenient = 0; lenient < 2; lenient++)
		if (lwsbt_parse_line(blob, size / 2, &n, (const char *)exact, size, lenient) == LWSBT_OK)
			check(n <= size / 2);
	lwsbt_parse_decoded(&s, (const char *)exact, size);
	check(s.depth <= LWSBT_DEPTH_MAX);
	free(exact);
	free(blob);
	return 0;
}
