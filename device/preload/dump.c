/*
 * Dumps of the live allocations, and events. A record is the text that its stack
 * has once and for all, then size and user fields.
 */
#include <errno.h>
#include <string.h>

#include "preload.h"

bool with_events;
unsigned long dump_every;
bool dump_at_peak;
int dump_wanted;

static uint32_t dumps;		/* so far, in this boot */
static unsigned long dump_next; /* milliseconds */
static uintptr_t peak_dumped;	/* bytes at the last dump at the peak */
static char pairs[4096][2];	/* of 12 bits, in base64 */

void record_init(void)
{
	static const char d[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (unsigned i = 0; i < 4096; i++) {
		pairs[i][0] = d[i >> 6];
		pairs[i][1] = d[i & 63];
	}
}

/* ---------------------------------------------------------------- records */

/* What goes on behind a stack's text. Bits are written 8 bytes at a time, and turned
 * into characters at the end: without a branch on how many there are. */
struct tail {
	char *p;	/* where the characters go */
	size_t before;	/* bits of the blob, in the characters before */
	uint64_t acc;
	unsigned n;	/* bits in acc, not yet in a whole byte: 0 to 7 */
	uint8_t *at;	/* in an array of TAIL bytes, which is not in here: so that a
			 * compiler can keep the members in registers */
};
#define TAIL 96 /* a size and 6 user fields have 80 at most */
#define INLINE static inline __attribute__((always_inline))

/* put_bits adds 1 to 57 bits; v has none above them. */
INLINE void put_bits(struct tail *t, uint64_t v, unsigned width)
{
	t->acc = t->acc << width | v;
	t->n += width;
	v = t->acc << (64 - t->n);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	v = __builtin_bswap64(v);
#endif
	memcpy(t->at, &v, 8);
	t->at += t->n >> 3;
	t->n &= 7;
}

/* put_value adds a count, a value, and their spill bits. [BT-COUNT-1] */
INLINE void put_value(struct tail *t, uint64_t v)
{
	unsigned count = 64 - (unsigned)__builtin_clzll(v | 1);

	if (LIKELY(count <= 49)) {
		put_bits(t, ((uint64_t)count << 1 << count | v) << 1, count + 8);
		return;
	}
	put_bits(t, (uint64_t)(count & 63) << 1, 7);
	put_bits(t, v >> 32, count - 32);
	put_bits(t, (v & 0xffffffff) << 1, 33);
}

/* put_user adds a user field. */
INLINE void put_user(struct tail *t, unsigned tag, uint64_t v)
{
	unsigned count = 64 - (unsigned)__builtin_clzll(v | 1);

	if (LIKELY(count <= 44)) {
		put_bits(t, (((uint64_t)tag << 7 | count) << 1 << count | v) << 1, count + 13);
		return;
	}
	put_bits(t, tag << 1, 5);
	put_value(t, v);
}

/* begin writes the lead-in and what is known of the stack. */
INLINE void begin(struct tail *t, uint8_t *bytes, char *p, const char *lead, stack_id id)
{
	const struct stack *s = stack_encoded(id);

	memcpy(p, lead, 3);
	p += 3;
	t->at = bytes;
	if (LIKELY(s)) {
		for (unsigned i = 0; i < s->chars; i += TEXT_STEP)
			memcpy(p + i, s->text + i, TEXT_STEP);
		t->p = p + s->chars;
		t->before = s->chars * 6u;
		t->acc = s->restbits;
		t->n = s->rest;
		return;
	}
	t->p = p;
	t->before = t->acc = t->n = 0;
	put_bits(t, 0, 6); /* no frames */
}

/* end pads the bits, and appends length, padding and line end. [BT-BLOB-1] */
INLINE char *end(struct tail *t, const uint8_t *bytes)
{
	size_t bits = t->before + (size_t)(t->at - bytes) * 8 + t->n;
	size_t len = (bits + 7) / 8 + 2, chars, left;
	char *p = t->p;

	put_bits(t, len, (unsigned)(len * 8 - bits));
	chars = (len * 8 + 5) / 6;
	memset(t->at + 1, 0, 8); /* the last character's bits are filled up */
	t->p += chars - t->before / 6;
	for (const uint8_t *q = bytes; p < t->p; q += 6, p += 8) {
		uint64_t v;
		memcpy(&v, q, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
		v = __builtin_bswap64(v);
#endif
		memcpy(p, pairs[v >> 52], 2);
		memcpy(p + 2, pairs[v >> 40 & 4095], 2);
		memcpy(p + 4, pairs[v >> 28 & 4095], 2);
		memcpy(p + 6, pairs[v >> 16 & 4095], 2);
	}
	p = t->p;
	left = (4 - chars % 4) % 4;
	memset(p, '=', 3);
	p[left] = '\n';
	return p + left + 1;
}

/* The longest record: a stack's text, a size, four user fields and an old address. */
#define RECORD_MAX (3 + (LWSBT_EVENT_MAX + 2) / 3 * 4 + 8 + TEXT_STEP)

/* ---------------------------------------------------------------- events */

/* Events wait here, and become text together: that is quicker than one by one. Any
 * other line, and what writes to the file, has them written first. */
#define QUEUE 64
static struct queued {
	uintptr_t addr, old;
	uint64_t time, size;
	stack_id stack;
	uint32_t tid, kind;
} queue[QUEUE];
unsigned events_queued;

INLINE char *event_text(const struct queued *e, char *p)
{
	struct tail t;
	uint8_t bytes[TAIL];

	begin(&t, bytes, p, "~e#", e->stack);
	put_value(&t, e->size);
	/* The kind has 1 bit, or 2; with it go tag and count of an address of 47 bits,
	 * which those of most programs are. */
	if (LIKELY(e->kind < 2 && (uint64_t)e->addr >> 46 == 1)) {
		put_bits(&t, (LWSBT_TAG_EVENT << 10 | 1 << 3 | e->kind << 1) << 12 |
			LWSBT_TAG_ADDRESS << 8 | 47 << 1, 26);
		put_bits(&t, (uint64_t)e->addr << 1, 48);
	} else {
		put_user(&t, LWSBT_TAG_EVENT, e->kind);
		put_user(&t, LWSBT_TAG_ADDRESS, e->addr);
	}
	if (e->kind == LWSBT_MOVED)
		put_user(&t, LWSBT_TAG_OLD, e->old);
	put_user(&t, LWSBT_TAG_TIME, e->time);
	put_user(&t, LWSBT_TAG_THREAD, e->tid);
	return end(&t, bytes);
}

void events_write(void)
{
	unsigned n = events_queued;

	events_queued = 0;
	char *p = out_line(RECORD_MAX * QUEUE);
	if (!p)
		return;
	for (unsigned i = 0; i < n; i++)
		p = event_text(&queue[i], p);
	out_commit(p);
}

static inline void event_locked(unsigned kind, uintptr_t addr, uintptr_t old, size_t size, stack_id stack)
{
	if (!on)
		return;
	queue[events_queued] = (struct queued){addr, old, now(), size, stack, self.tid, kind};
	if (++events_queued == QUEUE)
		events_write();
}

static inline void event(unsigned kind, uintptr_t addr, size_t size, stack_id stack)
{
	lock(&out_lock);
	event_locked(kind, addr, 0, size, stack);
	unlock(&out_lock);
}

/* ---------------------------------------------------------------- dumps */

struct dumping {
	uint64_t n, bytes;
	uint64_t old;		/* records of epochs before, whose modules are gone */
	struct block *later;	/* these */
	uint64_t room;
};

static void write_block(const struct block *b, struct dumping *d)
{
	struct tail t;
	uint8_t bytes[TAIL];
	char *p = out_line(RECORD_MAX);

	if (!p)
		return;
	begin(&t, bytes, p, "~m#", b->stack);
	put_value(&t, b->size);
	put_user(&t, LWSBT_TAG_ADDRESS, b->addr);
	out_commit(end(&t, bytes));
	d->n++;
	d->bytes += b->size;
}

/* stranded reports whether a stack has to be read by the modules of its own
 * epoch, since one of its addresses is another module's by now. */
static bool stranded(stack_id id)
{
	const struct stack *s = stack_get(id);

	if (!s || s->epoch == modules_epoch)
		return false;
	for (unsigned i = 0; i < s->depth; i++)
		if (modules_moved(s->pcs[i] - 1, s->epoch))
			return true;
	return false;
}

static void dump_block(const struct block *b, void *arg)
{
	struct dumping *d = arg;

	if (UNLIKELY(modules_epoch) && stranded(b->stack)) {
		if (d->later && d->old < d->room)
			d->later[d->old] = *b;
		d->old++;
		return;
	}
	write_block(b, d);
}

static void count_old(const struct block *b, void *arg)
{
	if (stranded(b->stack))
		++*(uint64_t *)arg;
}

/* write_old writes blocks of epochs before, each under the modules of its own. */
static void write_old(struct dumping *d)
{
	uint32_t epoch = 0;

	for (uint64_t left = d->old; left;) {
		uint32_t next = UINT32_MAX;
		bool said = false;
		for (uint64_t i = 0; i < d->old; i++) {
			uint32_t e = stack_get(d->later[i].stack)->epoch;
			if (e == epoch) {
				if (!said)
					modules_write_epoch(epoch);
				said = true;
				write_block(&d->later[i], d);
				left--;
			} else if (e > epoch && e < next)
				next = e;
		}
		epoch = next;
	}
}

static void write_head(const char *verb, uint64_t number, uint64_t n, uint64_t bytes,
	const char *why)
{
	char *p = out_line(256);

	if (!p)
		return;
	p = put_dec(put_text(put_text(put_text(p, "~h#"), verb), " "), number);
	if (why)
		p = put_dec(put_text(p, " t="), now());
	p = put_dec(put_text(p, " n="), n);
	p = put_dec(put_text(p, " b="), bytes);
	if (why)
		p = put_text(put_text(p, " u=1 why="), why);
	out_commit(put_text(p, "\n"));
}

/* write_totals writes "~h#total", which counts from the beginning of the recording. */
void write_totals(void)
{
	struct totals t;
	char *p = out_line(256);

	if (!p)
		return;
	blocks_totals(&t);
	p = put_dec(put_text(p, "~h#total t="), now());
	p = put_dec(put_text(p, " allocs="), t.allocations);
	p = put_dec(put_text(p, " frees="), t.frees);
	p = put_dec(put_text(p, " bytes="), t.allocated);
	p = put_dec(put_text(p, " live="), t.bytes);
	p = put_dec(put_text(p, " peak="), blocks_peak);
	out_commit(put_text(p, "\n"));
}

bool dump(const char *why, bool wait)
{
	struct dumping d = {0};
	struct totals t;

	if (!on)
		return true;
	if (wait) {
		modules_lock();
		blocks_lock();
		lock(&out_lock);
	} else {
		if (!modules_try_lock())
			return false;
		if (!blocks_try_lock()) {
			modules_unlock();
			return false;
		}
		if (!lock_try(&out_lock)) {
			blocks_unlock();
			modules_unlock();
			return false;
		}
	}
	blocks_totals(&t);
	uint64_t number = dumps++;
	write_totals();
	write_head("begin", number, t.live, t.bytes, why);
	if (modules_epoch) {
		uint64_t old = 0;
		blocks_each(count_old, &old);
		d.room = old;
		if (old)
			d.later = pages(old * sizeof *d.later);
	}
	blocks_each(dump_block, &d);
	if (d.later) {
		write_old(&d);
		modules_write();
		pages_free(d.later, d.room * sizeof *d.later);
	}
	write_head("end", number, d.n, d.bytes, NULL);
	out_flush();
	unlock(&out_lock);
	blocks_unlock();
	modules_unlock();
	return true;
}

void due(void)
{
	if (UNLIKELY(__atomic_load_n(&dump_wanted, __ATOMIC_RELAXED)) &&
	    __atomic_exchange_n(&dump_wanted, 0, __ATOMIC_ACQUIRE))
		dump("signal", true);
	if (UNLIKELY(dump_every)) {
		unsigned long t = (unsigned long)(now_coarse() / 1000);
		unsigned long next = __atomic_load_n(&dump_next, __ATOMIC_RELAXED);
		if (!next)
			__atomic_compare_exchange_n(&dump_next, &next, dump_every, false,
				__ATOMIC_RELAXED, __ATOMIC_RELAXED);
		else if (t >= next &&
			 __atomic_compare_exchange_n(&dump_next, &next, t + dump_every, false,
				 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			dump("interval", true);
	}
}

/* at_peak is asked before the heap becomes smaller: the peak is dumped when it is
 * higher than the last one by 1 % and ends. */
static void at_peak(void)
{
	uintptr_t live = __atomic_load_n(&blocks_live, __ATOMIC_RELAXED);
	uintptr_t last = __atomic_load_n(&peak_dumped, __ATOMIC_RELAXED);

	if (live < __atomic_load_n(&blocks_peak, __ATOMIC_RELAXED) || live <= last + last / 100 + 4096)
		return;
	if (__atomic_compare_exchange_n(&peak_dumped, &last, live, false, __ATOMIC_RELAXED,
		__ATOMIC_RELAXED))
		dump("peak", true);
}

/* ---------------------------------------------------------------- recording */

void record_boot(void)
{
	extern char *program_invocation_short_name;
	struct lwsbt_text text;
	struct lwsbt_out out = {lwsbt_line_text, &text};

	dumps = 0;
	dump_next = 0;
	peak_dumped = 0;
	uint64_t epoch = clock_begin();
	lock(&out_lock);
	char *p = out_line(1024);
	if (p) {
		text = (struct lwsbt_text){p, 1024, 0};
		lwsbt_head_boot(&out, program_invocation_short_name, (uint64_t)owner, epoch);
		out_commit(p + text.len);
		modules_write();
		out_flush();
	}
	unlock(&out_lock);
}

INLINE stack_id stack_here(const struct regs *from)
{
	if (UNLIKELY(from->pc - loader_lo < loader_hi - loader_lo))
		modules_stale = true;
	if (UNLIKELY(__atomic_load_n(&modules_stale, __ATOMIC_RELAXED)) ||
	    (++self.count % 64 == 0 && !modules_careful()))
		modules_check();
	return walk(from);
}

void record_alloc(void *p, size_t size, const struct regs *from)
{
	stack_id id = stack_here(from);

	if (UNLIKELY(!blocks_add((uintptr_t)p, size, id)))
		return; /* no memory for it: its free is not known either */
	if (with_events)
		event(LWSBT_ALLOCATED, (uintptr_t)p, size, id);
	due();
}

void record_free(void *p)
{
	struct block b;

	if (UNLIKELY(dump_at_peak))
		at_peak();
	if (LIKELY(blocks_take((uintptr_t)p, &b)) && with_events)
		event(LWSBT_FREED, b.addr, b.size, 0);
	due();
}

/*
 * record_move of a block that the program resizes. The old address must not be
 * seen in use by another thread before the event is written, so the output is
 * held while real does it: the C library's allocator takes no lock of ours. (The
 * locks of blocks come before that of output, so the block is taken first.)
 */
void *record_move(void *p, size_t size, const struct regs *from, void *(*real)(void *, size_t))
{
	stack_id id = stack_here(from);
	struct block b;

	if (UNLIKELY(dump_at_peak))
		at_peak();
	bool known = blocks_take((uintptr_t)p, &b);
	if (with_events)
		lock(&out_lock);
	void *q = real(p, size);
	int e = errno;
	if (with_events) {
		if (q && known)
			event_locked(LWSBT_MOVED, (uintptr_t)q, (uintptr_t)p, size, id);
		else if (q)
			event_locked(LWSBT_ALLOCATED, (uintptr_t)q, 0, size, id);
		else if (known && !size)
			event_locked(LWSBT_FREED, (uintptr_t)p, 0, b.size, 0);
		unlock(&out_lock);
	}
	if (q)
		blocks_add((uintptr_t)q, size, id);
	else if (known && size) /* it did not move */
		blocks_back(&b);
	due();
	errno = e;
	return q;
}
