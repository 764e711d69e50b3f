/* Calls the library's encoder and decoder with known memory around them. */
#include "btref.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int
spill_is_off(const struct machine *m, const struct stack *s)
{
	static struct naive n;
	uint8_t blob[MAX_BLOB];
	size_t len = lib_encode(blob, s);
	int f;

	/* values of 32 bits and more may be lossy, but are valid */
	if (naive_read(&n, blob, len, WORD)) {
		fprintf(stderr, "btref: the naive reader rejects what the library wrote "
			"for its first probe: %s at bit %u\n", n.reason, (unsigned int)n.bit);
		exit(EXIT_SELF);
	}
	for (f = 0; f < n.fields; f++)
		if (n.field[f].spill != machine_spill(m, n.field[f].value))
			return 1;
	return 0;
}

int
machine_spill(const struct machine *m, uint64_t wire)
{
	return m->shift == SHIFT_WRAP && wire / 0x80000000u % 2;
}

/* Returns the top bit that the library writes for v in a field of this width. */
static int
top_bit(uintptr_t v, unsigned int width)
{
	uint8_t buf[16] = { 0 };
	lws_backtrace_comp_t c;

	lws_backtrace_compression_stream_init(&c, buf, sizeof(buf));
	lws_backtrace_compression_stream(&c, v, width);
	return buf[0] / 128;
}

void
machine_probe(struct machine *m)
{
	/* every kind of field; addresses below 2^31 (the same for all classes) and above */
	static const struct stack probes[] = {
		{ "", 0x1d60, { 0x406651, 0x406852, 0x406c1b, 0x406294 }, 4 },
		{ "", 0x80000001, { 0x80000000, 0x80000100, 0x80000080, 0xfffffff0 }, 4 },
	};
	static const char *const names[] = { "exact", "wrap", "zero" };
	unsigned int n;

	/*
	 * In a field of 41 bits, the top bit is bit 40; a machine that wraps writes
	 * bit 8 there. With 32-bit words, only the spill bit distinguishes the
	 * classes: it is bit -1, which wraps to bit 31.
	 */
	if (WORD == 64) {
		if (top_bit((uintptr_t)1 << 8, 41))
			m->shift = SHIFT_WRAP;
		else
			m->shift = top_bit((uintptr_t)1 << (WORD - 24), 41) ?
							SHIFT_EXACT : SHIFT_ZERO;
	} else {
		uint8_t buf[16] = { 0 };
		lws_backtrace_comp_t c;

		lws_backtrace_compression_stream_init(&c, buf, sizeof(buf));
		lws_backtrace_compression_stream(&c, (uintptr_t)1 << 31, 32);
		m->shift = buf[4] / 128 ? SHIFT_WRAP : SHIFT_ZERO;
	}
	snprintf(m->name, sizeof(m->name), "%s%d", names[m->shift], WORD);

	{
		static const struct stack near[] = {
			{ "", 0, { 0x406651, 0x406652 }, 2 }, { "", 0, { 0x406651, 0x206651 }, 2 },
		};
		uint8_t a[MAX_BLOB], b[MAX_BLOB];

		m->best = lib_encode(a, &near[0]) < lib_encode(b, &near[1]);
	}
	m->spill_any = false;
	for (n = 0; n < sizeof(probes) / sizeof(probes[0]); n++)
		if (spill_is_off(m, &probes[n]))
			m->spill_any = true;
}

size_t
lib_encode(uint8_t *buf, const struct stack *s)
{
	lws_backtrace_info_t si;
	lws_backtrace_comp_t c;
	unsigned int bits = lws_sigbits((uintptr_t)s->size);
	size_t len;
	int n;

	memset(&si, 0, sizeof(si));
	si.sp = (uint8_t)s->depth;
	for (n = 0; n < s->depth; n++)
		si.st[n] = (uintptr_t)s->pcs[n];

	lws_backtrace_compression_stream_init(&c, buf, MAX_BLOB);
	if (lws_backtrace_compress_backtrace(&si, &c) ||
	    lws_backtrace_compression_stream(&c, bits, 6) ||
	    lws_backtrace_compression_stream(&c, (uintptr_t)s->size, bits))
		return 0;

	len = (c.pos + 7) / 8 + 2;
	buf[len - 2] = (uint8_t)(len / 256);
	buf[len - 1] = (uint8_t)(len % 256);
	return len;
}

/* ---- decoding with known memory around the blob ---- */

enum { BEFORE = 65536, AFTER = 4096 };

static uint8_t *arena;			/* BEFORE, a blob, AFTER */
static lws_backtrace_info_t *arena_si;	/* ends at an unmapped page */

static void *
map(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		perror("btref: mmap");
		exit(EXIT_SELF);
	}
	return p;
}

static void
arena_make(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *p = map(2 * page);

	if (mprotect(p + page, page, PROT_NONE)) {
		perror("btref: mprotect");
		exit(EXIT_SELF);
	}
	arena_si = (lws_backtrace_info_t *)(void *)(p + page - sizeof(*arena_si));
	arena = map(BEFORE + 65536 + AFTER);
}

void
lib_parse(struct parsed *out, const uint8_t *blob, size_t len)
{
	uint8_t *at;
	int n;

	if (len > 65536) {
		fprintf(stderr, "btref: a blob of %lu bytes, at most 65536 were expected\n",
			(unsigned long)len);
		exit(EXIT_USAGE);
	}
	if (!arena)
		arena_make();
	at = arena + BEFORE;
	memcpy(at, blob, len);
	memset(arena_si, 0, sizeof(*arena_si));
	lib_logged_ref_err = 0;

	out->rc = lws_alloc_metadata_parse(arena_si, at + len);

	memset(at, 0, len);
	out->ref_err = lib_logged_ref_err;
	out->depth = arena_si->sp;
	out->size = arena_si->asize;
	for (n = 0; n < 32; n++)
		out->pcs[n] = arena_si->st[n];
}

/* ---- printing ---- */

void
pcs_print(FILE *f, const uint64_t *pcs, int depth)
{
	int n;

	if (!depth)
		fputc('-', f);
	for (n = 0; n < depth; n++)
		fprintf(f, "%s%llx", n ? "," : "", (unsigned long long)pcs[n]);
}

void
hex_print(FILE *f, const uint8_t *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		fprintf(f, "%02x", p[i]);
}

void
parsed_print(FILE *f, const struct parsed *p)
{
	/*
	 * The library gives no reason for a failure. There are two: a base before
	 * frame 0, which it logs, and a field beyond the end.
	 */
	if (p->rc) {
		fprintf(f, "reject %s", p->ref_err ? "back" : "truncated");
		return;
	}
	fprintf(f, "ok size=%llu pcs=", (unsigned long long)p->size);
	pcs_print(f, p->pcs, p->depth > 32 ? 32 : p->depth);
}

int
lib_line(char *text, const uint8_t *blob, size_t len)
{
	memcpy(text, "~m#", 4);
	return lws_b64_encode_string((const char *)blob, (int)len, text + 3, MAX_LINE - 3) < 0;
}
