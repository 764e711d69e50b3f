/* Errata of the decoder. */
#include "errata.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- 3: lengths 0 and 1 ---- */

struct bare {
	uint8_t length;
	uint8_t follows;
	bool guard;
};

/* Parses `00 length`, followed by memory filled with `follows` or unmapped. */
static int
bare_fn(void *arg, int fd)
{
	const struct bare *b = arg;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	lws_backtrace_info_t si;
	struct parsed out;

	if (p == MAP_FAILED)
		exit(EXIT_SELF);
	memset(p + page, b->follows, page);
	p[page - 1] = b->length;
	if (b->guard && mprotect(p + page, page, PROT_NONE))
		exit(EXIT_SELF);
	memset(&out, 0, sizeof(out));
	memset(&si, 0, sizeof(si));
	out.rc = lws_alloc_metadata_parse(&si, p + page);
	out.depth = si.sp;
	out.size = si.asize;
	out.pcs[0] = si.st[0];
	write_all(fd, &out, sizeof(out));
	return 0;
}

static int
tiny_lengths(void)
{
	static struct outcome o;
	int length, bad = 0;
	char text[256];

	did("lws_alloc_metadata_parse() was given blobs that end in the lengths 0 and 1, which "
	    "count less than themselves, with zeros after them, with 0x10 bytes after them, and "
	    "with memory that can't be read after them.");
	expected("failure: there is no blob, as in metadata that did not fit.");
	for (length = 0; length < 2; length++) {
		struct bare b = { (uint8_t)length, 0, false };
		struct parsed p[2];
		int k;

		memset(p, 0, sizeof(p));
		for (k = 0; k < 2; k++) {
			b.follows = k ? 0x10 : 0;
			child_run(&o, bare_fn, &b, 10);
			p[k].rc = -1;
			if (o.how == CHILD_DONE && o.len == sizeof(p[k]))
				memcpy(&p[k], o.data, sizeof(p[k]));
		}
		b.guard = true;
		child_run(&o, bare_fn, &b, 10);
		outcome_text(&o, text, sizeof(text));
		saw("length %d: returned %d (%d frames, size %llu), then %d (%d frames, size "
		    "%llu); the third time %s. The memory read is what lies after the blob.",
		    length, p[0].rc, p[0].depth, (unsigned long long)p[0].size, p[1].rc,
		    p[1].depth, (unsigned long long)p[1].size, text);
		bad += p[0].rc == 0 && o.how == CHILD_SIGNAL;
	}
	return bad == 2;
}

/* ---- 4 ---- */

static int
delta_first(void)
{
	struct maker m = { { 0 }, 0 };
	static struct outcome o;
	struct parsed p;
	char text[256];
	size_t len;
	bool back;

	make_field(&m, 1, 5);
	make_field(&m, 1, 1);	/* frame 0: a delta */
	make_field(&m, 0, 3);
	make_field(&m, 0, 1);
	make_field(&m, 4, 6);
	make_field(&m, 9, 4);
	make_field(&m, 1, 6);
	make_field(&m, 1, 1);
	len = make_end(&m);
	back = parse_in_child(&p, &o, m.bytes, len);

	did("a blob whose first frame is a delta was decoded.");
	expected("failure is returned.");
	if (back)
		saw("%s%s.", parsed_text(&p, text, sizeof(text)),
		    p.rc && p.ref_err ? ", and \"ref err\" in its log" : "");
	else
		saw("%s: an assertion, on data that comes from outside.",
		    outcome_text(&o, text, sizeof(text)));
	if (back && p.rc)
		return not_here("this library was compiled with NDEBUG, so that the assertion is "
				"gone and the check after it rejects the blob");
	return 1;
}

/* ---- 9 ---- */

static int
depth_spill(void)
{
	struct maker one = { { 0 }, 0 }, many = { { 0 }, 0 };
	static struct outcome o1, o2;
	struct parsed p1, p2;
	bool back1, back2;
	char t1[256], t2[256];
	int n;

	make_bits(&one, 1, 5);
	make_bits(&one, 1, 1);	/* the spill bit */
	make_literal(&one, 0x406651, 23);
	make_field(&one, 5, 6);
	make_field(&one, 16, 5);
	back1 = parse_in_child(&p1, &o1, one.bytes, make_end(&one));

	make_bits(&many, 1, 5);
	make_bits(&many, 1, 1);
	for (n = 0; n < 40; n++)	/* each byte is 0x22, whichever of them becomes sp */
		make_literal(&many, 0x22222222, 31);
	back2 = parse_in_child(&p2, &o2, many.bytes, make_end(&many));

	did("a stack of one frame, 0x406651, was decoded whose depth is followed by a spill bit "
	    "of 1, as clang writes it; then the same with 40 literals after it.");
	expected("one frame and the size 16; and with bits after the size, one frame too. No "
		 "result beyond st[31].");
	saw("%s. With 40 literals: %s%s.", back1 ? parsed_text(&p1, t1, sizeof(t1)) :
	    outcome_text(&o1, t1, sizeof(t1)), back2 ? parsed_text(&p2, t2, sizeof(t2)) :
	    outcome_text(&o2, t2, sizeof(t2)),
	    !back2 ? ": having written st[32] and on, over the struct's other members and past its "
		     "end, where here a page begins that can't be written" : "");
	if (back1 && !p1.rc && p1.depth == 1)
		return not_here("on this build the spill bit of the depth is ignored");
	return 1;
}

/* ---- 10 ---- */

static int
count_64(void)
{
	static const struct stack s = { "", 0x1d60, { 0x406651, 0x8000000000000000, 0x406852 }, 3 };
	uint8_t blob[MAX_BLOB];
	static struct naive n;
	struct parsed p;
	char text[256];
	size_t len;

	if (WORD == 32)
		return not_here("words have 32 bits on this machine: no value has 64");
	len = lib_encode(blob, &s);
	naive_read(&n, blob, len, WORD);
	lib_parse(&p, blob, len);
	did("0x406651 0x8000000000000000 0x406852 was encoded and decoded; 64 significant bits.");
	expected("three frames, the first and last of them intact, and size 7520: so the bits read "
		 "when a count of 0 means 64 (0x%llx 0x%llx 0x%llx, size %llu).",
		 (unsigned long long)n.pcs[0], (unsigned long long)n.pcs[1],
		 (unsigned long long)n.pcs[2], (unsigned long long)n.size);
	saw("%s: 64 does not fit a count's 6 bits and is written as 0, and then no bits are read.",
	    parsed_text(&p, text, sizeof(text)));
	return !n.reason && n.size == 7520 && n.pcs[2] == 0x406852 &&
	       (p.rc || p.size != 7520 || p.pcs[2] != 0x406852);
}

/* ---- 14 ---- */

static int
clang_string(void)
{
	static const char line[] = "JF0BmUQugNCkhSnkhdAYpQa6wAAV";
	static struct outcome o;
	static struct naive n;
	uint8_t blob[64];
	struct parsed p;
	char text[256];
	int len = naive_base64(blob, sizeof(blob), line);
	bool back = parse_in_child(&p, &o, blob, (size_t)len);

	naive_read(&n, blob, (size_t)len, WORD);
	did("~m#%s was decoded, which this library writes for the README's addresses when clang "
	    "compiled it.", line);
	expected("size 7520, 0x406651 0x406852 0x406c1b 0x406294 (whoever ignores spill bits reads "
		 "%llu, 0x%llx ...).", (unsigned long long)n.size, (unsigned long long)n.pcs[0]);
	saw("%s.", back ? parsed_text(&p, text, sizeof(text)) :
			  outcome_text(&o, text, sizeof(text)));
	if (back && !p.rc && p.depth == 4 && p.size == 7520)
		return not_here("on this build spill bits of constant fields are ignored");
	return 1;
}

const struct erratum errata_read[] = {
	{ 3, "lengths 0 and 1 are parsed, with success, from what lies after the blob",
	  tiny_lengths },
	{ 4, "a delta as first frame is an assertion", delta_first },
	{ 9, "the depth's spill bit is read: the depth becomes huge, and results leave st[]",
	  depth_spill },
	{ 10, "a count of 64 is written 0, and the decoder loses its place", count_64 },
	{ 14, "a decoder built by gcc can't read what an encoder built by clang wrote",
	  clang_string },
	{ 0, NULL, NULL }
};
