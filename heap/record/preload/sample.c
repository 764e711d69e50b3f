/*
 * Which blocks are recorded where not all are: each byte allocated is a sample point
 * with the same probability, and a block is recorded if it has at least one. And which
 * blocks were: only their frees are told.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "preload.h"

/* ---------------------------------------------------------------- allocations */

static uint64_t random64(void)
{
	uint64_t x = self.random; /* xorshift64*: Vigna, 2016 */

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	self.random = x;
	return x * 0x2545f4914f6cdd1du;
}

/* logarithm of x, > 0: of its exponent, and of its mantissa m, 0.7 to 1.4, by the series of
 * 2 artanh((m - 1) / (m + 1)), whose error is below 1e-9. No libm: no errno. */
static double logarithm(double x)
{
	int e = 0;

	for (; x < 0.70710678; e--)
		x *= 2;
	double t = (x - 1) / (x + 1), t2 = t * t;
	return e * 0.69314718055994531 + 2 * t * (1 + t2 * (1. / 3 + t2 * (1. / 5 + t2 * (1. / 7 +
		t2 * (1. / 9 + t2 / 11)))));
}

/* distance to the next sample point: of a geometric distribution, 1 or more bytes. */
static int64_t distance(void)
{
	double u = (double)((random64() >> 11) + 1) / 9007199254740992.0; /* 0 < u <= 1 */
	double d = -logarithm(u) * (double)fixed.sample;

	return d < 4e18 ? (int64_t)d + 1 : (int64_t)4e18;
}

NOINLINE bool sampled_slow(size_t n)
{
	if (!self.random) {
		self.random = (uint64_t)(uintptr_t)&self * 0x9e3779b97f4a7c15u ^ stamp() * 0xd1342543de82ef95u ^ image;
		self.random |= 1;
		for (int i = 0; i < 4; i++)
			random64();
		self.left = distance();
	}
	if ((uint64_t)self.left > n) {
		self.left -= (int64_t)n;
		return false;
	}
	/* What is left of the block behind the point has no memory of it. */
	self.left = distance();
	return true;
}

/* ---------------------------------------------------------------- frees */

/* Addresses of recorded blocks, in buckets of a cache line. The last word of a bucket marks
 * it as full. All frees of a full bucket are recorded; btrecord ignores those of other blocks. */
#define BUCKET (64 / WORD)
#define BUCKETS 8192u
#define FULL 1u

static uintptr_t (*buckets)[BUCKET];

bool sample_start(void)
{
	size_t bytes = BUCKETS * sizeof *buckets;

	buckets = pages(bytes);
	if (buckets)
		madvise(buckets, bytes, MADV_WIPEONFORK);
	return buckets;
}

static inline uintptr_t *bucket_of(uintptr_t p)
{
	return buckets[(uint32_t)(((uint64_t)p >> 4) * 0x9e3779b97f4a7c15u >> 40) % BUCKETS];
}

void sample_add(uintptr_t p)
{
	uintptr_t *b = bucket_of(p);

	for (unsigned i = 0; i < BUCKET - 1; i++) {
		uintptr_t none = 0;
		if (!__atomic_load_n(&b[i], __ATOMIC_RELAXED) &&
		    __atomic_compare_exchange_n(&b[i], &none, p, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return;
	}
	__atomic_store_n(&b[BUCKET - 1], FULL, __ATOMIC_RELAXED);
}

bool sample_has(uintptr_t p)
{
	uintptr_t *b = bucket_of(p);

	for (unsigned i = 0; i < BUCKET - 1; i++)
		if (__atomic_load_n(&b[i], __ATOMIC_RELAXED) == p) {
			__atomic_store_n(&b[i], 0, __ATOMIC_RELAXED);
			return true;
		}
	return __atomic_load_n(&b[BUCKET - 1], __ATOMIC_RELAXED) == FULL;
}
