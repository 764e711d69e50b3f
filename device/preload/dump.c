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

/* What goes on behind a stack's text: up to 11 bits that wait for more. */
struct tail {
	char *p;
	uint64_t acc;
	unsigned n;
	size_t bits; /* of the blob so far, those in acc not counted */
};

static inline void emit(struct tail *t)
{
	while (t->n >= 12) {
		t->n -= 12;
		memcpy(t->p, pairs[t->acc >> t->n & 4095], 2);
		t->p += 2;
		t->bits += 12;
	}
}

/* put_bits adds up to 48 bits. */
static inline void put_bits(struct tail *t, uint64_t v, unsigned width)
{
	t->acc = t->acc << width | v;
	t->n += width;
	emit(t);
}

/* put_value adds a count, a value, and their spill bits. [BT-COUNT-1] */
static inline void put_value(struct tail *t, uint64_t v)
{
	unsigned count = v ? 64 - (unsigned)__builtin_clzll(v) : 1;

	if (LIKELY(count <= 40)) {
		put_bits(t, ((uint64_t)(count & 63) << 1 << count | v) << 1, count + 8);
		return;
	}
	put_bits(t, (uint64_t)(count & 63) << 1, 7);
	put_bits(t, v >> 32, count - 32);
	put_bits(t, (v & 0xffffffff) << 1, 33);
}

/* put_user adds a user field. */
static inline void put_user(struct tail *t, unsigned tag, uint64_t v)
{
	unsigned count = v ? 64 - (unsigned)__builtin_clzll(v) : 1;

	if (LIKELY(count <= 35)) {
		put_bits(t, (((uint64_t)tag << 7 | count) << 1 << count | v) << 1, count + 13);
		return;
	}
	put_bits(t, tag << 1, 5);
	put_value(t, v);
}

/* begin writes the lead-in and what is known of the stack. */
static void begin(struct tail *t, char *p, const char *lead, stack_id id)
{
	const struct stack *s = stack_encoded(id);

	memcpy(p, lead, 3);
	p += 3;
	if (LIKELY(s)) {
		memcpy(p, s->text, s->chars);
		*t = (struct tail){p + s->chars, s->restbits, s->rest, s->chars * 6u};
	} else
		*t = (struct tail){p, 0, 6, 0}; /* no frames */
}

/* end pads the bits, and appends length, padding and line end. [BT-BLOB-1] */
static char *end(struct tail *t)
{
	size_t bits = t->bits + t->n, bytes = (bits + 7) / 8;
	size_t chars, left;

	if (bytes * 8 > bits)
		put_bits(t, 0, (unsigned)(bytes * 8 - bits));
	bytes += 2;
	put_bits(t, bytes, 16);
	/* 6 bits at a time, the last ones filled up with zeros */
	chars = (bytes * 8 + 5) / 6;
	if (t->n) {
		unsigned fill = (unsigned)(chars * 6 - bytes * 8);
		t->acc <<= fill;
		t->n += fill;
		if (t->n >= 12)
			emit(t);
		if (t->n == 6)
			*t->p++ = pairs[t->acc & 63][1];
	}
	for (left = (4 - chars % 4) % 4; left; left--)
		*t->p++ = '=';
	*t->p++ = '\n';
	return t->p;
}

/* The longest record: a stack's text, a size, four user fields and an old address. */
#define RECORD_MAX (3 + (LWSBT_EVENT_MAX + 2) / 3 * 4 + 8)

static void event_locked(unsigned kind, uintptr_t addr, uintptr_t old, size_t size, stack_id stack)
{
	struct tail t;
	char *p = out_line(RECORD_MAX);

	if (!p)
		return;
	begin(&t, p, "~e#", stack);
	put_value(&t, size);
	/* The kind has 1 bit, or 2; with it go tag and count of an address of 47 bits,
	 * which those of most programs are. */
	if (LIKELY(kind < 2 && (uint64_t)addr >> 46 == 1)) {
		put_bits(&t, (LWSBT_TAG_EVENT << 10 | 1 << 3 | kind << 1) << 12 |
			LWSBT_TAG_ADDRESS << 8 | 47 << 1, 26);
		put_bits(&t, (uint64_t)addr << 1, 48);
	} else {
		put_user(&t, LWSBT_TAG_EVENT, kind);
		put_user(&t, LWSBT_TAG_ADDRESS, addr);
	}
	if (kind == LWSBT_MOVED)
		put_user(&t, LWSBT_TAG_OLD, old);
	put_user(&t, LWSBT_TAG_TIME, now());
	put_user(&t, LWSBT_TAG_THREAD, self.tid);
	out_commit(end(&t));
}

static void event(unsigned kind, uintptr_t addr, size_t size, stack_id stack)
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
	char *p = out_line(RECORD_MAX);

	if (!p)
		return;
	begin(&t, p, "~m#", b->stack);
	put_value(&t, b->size);
	put_user(&t, LWSBT_TAG_ADDRESS, b->addr);
	out_commit(end(&t));
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

static stack_id stack_here(const struct regs *from)
{
	uintptr_t pcs[FRAMES];

	if (UNLIKELY(from->pc - loader_lo < loader_hi - loader_lo))
		modules_stale = true;
	if (UNLIKELY(__atomic_load_n(&modules_stale, __ATOMIC_RELAXED)) || ++self.count % 64 == 0)
		modules_check();
	size_t n = walk(pcs, from);
	return stack_intern(pcs, n);
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
