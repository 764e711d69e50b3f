/* Errata of capture. */
#include "errata.h"

enum { PRE = LWS_COMPRESSED_BACKTRACES_SNIP_PRE, POST = LWS_COMPRESSED_BACKTRACES_SNIP_POST };

static volatile int after;

struct deep {
	lws_backtrace_info_t si;
	int rc;
	uint8_t pre, post;
};

static NOINLINE void
dig(struct deep *d, int more)
{
	if (more)
		dig(d, more - 1);
	else
		d->rc = lws_backtrace(&d->si, d->pre, d->post);
	after++;
}

static int
deep_stacks(void)
{
	struct deep d = { .pre = 0, .post = 0 }, snipped = { .pre = 0, .post = 2 };
	int base, n, first = 0;

	dig(&d, 0);
	base = d.si.sp;
	for (n = 1; n < 60 && !first; n++) {
		dig(&d, n);
		if (d.rc && d.si.sp == 32)
			first = base + n;
	}
	dig(&d, 40);
	dig(&snipped, 40);
	did("lws_backtrace() was called %d calls deep, and less deep by one each time.", base + 40);
	expected("0, \"for success\", as long as the struct was filled; and SNIP_POST takes the "
		 "levels \"at the bottom\" of the stack.");
	if (!first) {
		saw("it returned %d with %d frames.", d.rc, d.si.sp);
		return not_here("stacks are not unwound so far on this build: %d frames", d.si.sp);
	}
	saw("from %d levels on it returns %d, with the 32 innermost in the struct. %d levels deep "
	    "at post 2, it kept %d: the two it dropped are the outermost of those 32, not of the "
	    "program.", first, d.rc, base + 40, snipped.si.sp);
	return d.rc != 0 && d.si.sp == 32 && snipped.si.sp == 30;
}

struct both {
	lws_backtrace_info_t si;
	uint8_t comp[MAX_BLOB];
	size_t adj, cl;
};

static NOINLINE void
take_both(struct both *b)
{
	lws_backtrace(&b->si, PRE > 0 ? PRE - 1 : 0, POST);
	lws_alloc_metadata_gen(7520, b->comp, sizeof(b->comp), &b->adj, &b->cl);
	after++;
}

static NOINLINE void
pass(struct both *b, int more)
{
	if (more)
		pass(b, more - 1);
	else
		take_both(b);
	after++;
}

static int
inlined(void)
{
	static struct both b;
	static struct naive n;

	pass(&b, 4);
	naive_read(&n, b.comp, b.cl, WORD);
	did("lws_alloc_metadata_gen() took a stack at its SNIP_PRE of %d; beside it, in the same "
	    "function, lws_backtrace() took one at %d, there being one frame less between.", PRE,
	    PRE > 0 ? PRE - 1 : 0);
	expected("as many frames, the first of them in that function: SNIP_PRE 2 is to \"conceal the "
		 "helpers\", which are lws_alloc_metadata_gen() and lws_backtrace().");
	saw("%d frames and %d. %s", n.depth, b.si.sp, n.depth < b.si.sp ?
	    "The compiler inlined lws_backtrace(), so that the frame of the function that "
	    "allocates was snipped instead: what is lost depends on the optimiser." :
	    "Here both helpers have a frame.");
	if (!b.si.sp)
		return not_here("stacks are not unwound on this build");
	if (n.depth == b.si.sp)
		return not_here("this build did not inline lws_backtrace() in "
				"lws_alloc_metadata_gen()");
	return n.depth < b.si.sp;
}

static int
no_tables(void)
{
	struct deep d = { .pre = 0, .post = 0 };

	dig(&d, 10);
	did("lws_backtrace() was called 11 calls deep, from a program that has unwind tables.");
	expected("those calls and what led to them.");
	saw("it returned %d with %d frames.%s", d.rc, d.si.sp, d.si.sp > 10 ? "" :
	    " The way out leads through lws_backtrace() itself, which has no unwind tables: where "
	    "the compiler makes none unasked, the library's build does not ask for them.");
	if (d.si.sp > 10)
		return not_here("this machine's compiler makes unwind tables unasked");
	return 1;
}

const struct erratum errata_capture[] = {
	{ 15, "lws_backtrace() fails on deep stacks though it filled the struct; SNIP_POST then "
	      "cuts inner frames", deep_stacks },
	{ 18, "how many of the caller's frames SNIP_PRE takes depends on inlining", inlined },
	{ 26, "without unwind tables of its own the library captures next to nothing", no_tables },
	{ 0, NULL, NULL }
};
