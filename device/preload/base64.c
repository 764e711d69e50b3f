/*
 * Characters of base64 from bytes: the last third of a record.
 */
#include "tail.h"

#if defined(__x86_64__)
#include <tmmintrin.h>
#endif

static char pairs[4096][2]; /* of 12 bits */

/* by_pairs takes 6 bytes at a time. */
static void by_pairs(char *p, const char *end, const uint8_t *bytes)
{
	for (; p < end; bytes += 6, p += 8) {
		uint64_t v;
		memcpy(&v, bytes, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
		v = __builtin_bswap64(v);
#endif
		memcpy(p, pairs[v >> 52], 2);
		memcpy(p + 2, pairs[v >> 40 & 4095], 2);
		memcpy(p + 4, pairs[v >> 28 & 4095], 2);
		memcpy(p + 6, pairs[v >> 16 & 4095], 2);
	}
}

#if defined(__x86_64__)
/* by_vectors takes 12 bytes at a time: Mula, Lemire, "Faster Base64 Encoding and
 * Decoding Using AVX2 Instructions", 2018, section 3. */
__attribute__((target("ssse3")))
static void by_vectors(char *p, const char *end, const uint8_t *bytes)
{
	const __m128i order = _mm_set_epi8(10, 11, 9, 10, 7, 8, 6, 7, 4, 5, 3, 4, 1, 2, 0, 1);
	/* What to add to a value, by its class: 0 is a-z, 1 to 10 are digits, 11 is +,
	 * 12 is /, and 13 is A-Z. */
	const __m128i shift = _mm_setr_epi8('a' - 26, '0' - 52, '0' - 52, '0' - 52, '0' - 52, '0' - 52,
		'0' - 52, '0' - 52, '0' - 52, '0' - 52, '0' - 52, '+' - 62, '/' - 63, 'A', 0, 0);

	for (; p < end; bytes += 12, p += 16) {
		__m128i in = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)bytes), order);
		/* the first and third of 4 values, then the others */
		__m128i v = _mm_or_si128(
			_mm_mulhi_epu16(_mm_and_si128(in, _mm_set1_epi32(0x0fc0fc00)), _mm_set1_epi32(0x04000040)),
			_mm_mullo_epi16(_mm_and_si128(in, _mm_set1_epi32(0x003f03f0)), _mm_set1_epi32(0x01000010)));
		__m128i class = _mm_or_si128(_mm_subs_epu8(v, _mm_set1_epi8(51)),
			_mm_and_si128(_mm_cmpgt_epi8(_mm_set1_epi8(26), v), _mm_set1_epi8(13)));
		_mm_storeu_si128((__m128i *)(void *)p, _mm_add_epi8(_mm_shuffle_epi8(shift, class), v));
	}
}
#endif

void (*base64)(char *p, const char *end, const uint8_t *bytes) = by_pairs;

void base64_init(void)
{
	static const char d[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (unsigned i = 0; i < 4096; i++) {
		pairs[i][0] = d[i >> 6];
		pairs[i][1] = d[i & 63];
	}
#if defined(__x86_64__)
	if (__builtin_cpu_supports("ssse3"))
		base64 = by_vectors;
#endif
}
