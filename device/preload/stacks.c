/*
 * Each distinct call stack once. Looking one up takes no lock: entries are only
 * ever added, and published when they are complete.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "preload.h"

void *pages(size_t bytes)
{
	int e = errno;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	errno = e;
	return p == MAP_FAILED ? NULL : p;
}

void pages_free(void *p, size_t bytes)
{
	munmap(p, bytes);
}

/* ---------------------------------------------------------------- memory */

static lock_t keep_lock;
static char *keep_at, *keep_end;

void *keep(size_t bytes)
{
	size_t chunk = sizeof(void *) > 4 ? 256 << 10 : 32 << 10;
	char *p = NULL;

	bytes = (bytes + 15) & ~(size_t)15;
	lock(&keep_lock);
	if ((size_t)(keep_end - keep_at) < bytes) {
		if (bytes > chunk)
			chunk = (bytes + 4095) & ~(size_t)4095;
		p = pages(chunk);
		if (p) {
			keep_at = p;
			keep_end = p + chunk;
		}
	}
	if ((size_t)(keep_end - keep_at) >= bytes) {
		p = keep_at;
		keep_at += bytes;
	} else
		p = NULL;
	unlock(&keep_lock);
	return p;
}

/* ---------------------------------------------------------------- the index */

#define IDS (1u << 24)

/* An index by the lower half of the hash. An entry is a word: the id, 24 bits, and
 * above it as much of the upper half as fits. 0: free. */
struct index {
	uint32_t bits;
	uintptr_t entry[];
};

static inline uintptr_t entry_of(uint64_t hash, stack_id id)
{
	return (uintptr_t)(sizeof(uintptr_t) > 4 ? hash >> 32 << 32 : hash >> 32 << 24) | id;
}

static inline stack_id id_of(uintptr_t entry)
{
	return entry & (IDS - 1);
}

static struct index *find;
struct stack **stack_list[IDS >> STACK_BITS];
static uint32_t ids = 1; /* the next */
static lock_t add_lock;

static bool same(const struct stack *s, uint64_t hash, const uintptr_t *pcs, size_t depth,
	uint32_t epoch)
{
	return s->hash == hash && s->epoch == epoch && s->depth == depth &&
		!memcmp(s->pcs, pcs, depth * sizeof *pcs);
}

static stack_id look(struct index *x, uint64_t hash, const uintptr_t *pcs, size_t depth,
	uint32_t epoch, uint64_t *free)
{
	uint64_t mask = ((uint64_t)1 << x->bits) - 1, at = hash & mask;

	for (;; at = (at + 1) & mask) {
		uintptr_t e = __atomic_load_n(&x->entry[at], __ATOMIC_ACQUIRE);
		if (!e) {
			*free = at;
			return 0;
		}
		stack_id id = id_of(e);
		if (e == entry_of(hash, id) &&
		    same(stack_list[id >> STACK_BITS][id & ((1u << STACK_BITS) - 1)], hash, pcs, depth, epoch))
			return id;
	}
}

/* grown returns an index of twice the places. The old one is left to those who
 * still read it. */
static struct index *grown(struct index *old)
{
	uint32_t bits = old ? old->bits + 1 : 12;
	struct index *x = pages(sizeof *x + (sizeof *x->entry << bits));

	if (!x)
		return NULL;
	x->bits = bits;
	uint64_t mask = ((uint64_t)1 << bits) - 1;
	for (uint64_t i = 0; old && i < (uint64_t)1 << old->bits; i++) {
		if (!old->entry[i])
			continue;
		stack_id id = id_of(old->entry[i]);
		uint64_t at = stack_get(id)->hash & mask;
		while (x->entry[at])
			at = (at + 1) & mask;
		x->entry[at] = old->entry[i];
	}
	return x;
}

static stack_id add(uint64_t hash, const uintptr_t *pcs, size_t depth, uint32_t epoch)
{
	uint64_t at;
	stack_id id = 0;

	lock(&add_lock);
	if (!find || (uint64_t)ids * 2 > (uint64_t)1 << find->bits) {
		struct index *x = grown(find);
		if (x)
			__atomic_store_n(&find, x, __ATOMIC_RELEASE);
		else if (!find || (uint64_t)ids + 1 >= (uint64_t)1 << find->bits)
			goto out;
	}
	id = look(find, hash, pcs, depth, epoch, &at);
	if (id || ids >= IDS)
		goto out;
	struct stack ***block = &stack_list[ids >> STACK_BITS];
	if (!*block && !(*block = keep(sizeof **block << STACK_BITS)))
		goto out;
	struct stack *s = keep(sizeof *s + depth * sizeof *pcs);
	if (!s)
		goto out;
	s->hash = hash;
	s->epoch = epoch;
	s->depth = (uint8_t)depth;
	memcpy(s->pcs, pcs, depth * sizeof *pcs);
	(*block)[ids & ((1u << STACK_BITS) - 1)] = s;
	id = ids;
	__atomic_store_n(&ids, ids + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&find->entry[at], entry_of(hash, id), __ATOMIC_RELEASE);
out:
	unlock(&add_lock);
	return id;
}

stack_id stack_intern(const uintptr_t *pcs, size_t depth, uint64_t hash)
{
	uint64_t at;
	uint32_t epoch = __atomic_load_n(&modules_epoch, __ATOMIC_RELAXED);
	struct index *x = __atomic_load_n(&find, __ATOMIC_ACQUIRE);

	hash ^= hash >> 32;
	hash = (hash ^ epoch) * 0xff51afd7ed558ccdu;
	hash ^= hash >> 29;
	if (LIKELY(x)) {
		stack_id id = look(x, hash, pcs, depth, epoch, &at);
		if (LIKELY(id))
			return id;
	}
	return add(hash, pcs, depth, epoch);
}

void stacks_lock(void) { lock(&add_lock); }
void stacks_unlock(void) { unlock(&add_lock); }
void keep_take_lock(void) { lock(&keep_lock); }
void keep_leave_lock(void) { unlock(&keep_lock); }

/* ---------------------------------------------------------------- encoding */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* The text is the first characters of any record of the stack, since its bits stand
 * first and base64 takes 6 at a time. */
const struct stack *stack_encode(struct stack *s)
{
	uint8_t bits[LWSBT_BLOB_MAX + 8];
	struct lwsbt_stack in = {0};
	struct lwsbt_writer w;

	in.depth = s->depth;
	for (unsigned i = 0; i < s->depth; i++)
		in.pc[i] = s->pcs[s->depth - 1 - i];
	lwsbt_writer_init(&w, bits, sizeof bits);
	lwsbt_put_stack(&w, &in, LWSBT_SEARCH_BEST);
	size_t n = lwsbt_bits(&w);
	lwsbt_put(&w, 0, 8); /* the last bits into their byte */
	s->chars = (uint16_t)(n / 6);
	s->rest = (uint8_t)(n % 6);
	s->text = keep((s->chars + TEXT_STEP - 1) / TEXT_STEP * TEXT_STEP);
	if (!s->text)
		return NULL;
	uint32_t acc = 0;
	unsigned have = 0, c = 0;
	for (size_t i = 0; c < s->chars; i++) {
		acc = acc << 8 | bits[i];
		for (have += 8; have >= 6 && c < s->chars; have -= 6)
			s->text[c++] = digits[acc >> (have - 6) & 63];
	}
	for (size_t i = n - s->rest; i < n; i++)
		s->restbits = (uint8_t)(s->restbits << 1 | (bits[i / 8] >> (7 - i % 8) & 1));
	s->encoded = true;
	return s;
}
