/*
 * Dumps of the live allocations, and when they are due.
 */
#include "tail.h"

unsigned long dump_every;
bool dump_at_peak;
int dump_wanted;

static uint32_t dumps;		/* so far, in this boot */
static unsigned long dump_next; /* milliseconds */
static uintptr_t peak_dumped;	/* bytes at the last dump at the peak */

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

void dump_due(void)
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
void at_peak(void)
{
	uintptr_t live = __atomic_load_n(&blocks_live, __ATOMIC_RELAXED);
	uintptr_t last = __atomic_load_n(&peak_dumped, __ATOMIC_RELAXED);

	if (live < __atomic_load_n(&blocks_peak, __ATOMIC_RELAXED) || live <= last + last / 100 + 4096)
		return;
	if (__atomic_compare_exchange_n(&peak_dumped, &last, live, false, __ATOMIC_RELAXED,
		__ATOMIC_RELAXED))
		dump("peak", true);
}

/* ---------------------------------------------------------------- the beginning */

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
