/*
 * Mode capture: captures live call stacks of this program with the library's
 * capture function, encodes them, and puts them before allocations.
 *
 * Addresses change from run to run if the system randomises them. Link with
 * -static -no-pie, or run under setarch -R, for repeatable output.
 */
#include "btref.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PRES = 4, POSTS = 3, LOW_BITS = 0x7fffffff };

/* The captures at one point of the program. */
struct seen {
	lws_backtrace_info_t si[PRES][POSTS];
	int rc[PRES][POSTS];

	/* lws_alloc_metadata_gen(): a separate call, so frame 0 differs */
	uint8_t comp[MAX_BLOB];
	size_t adj, cl;
};

static struct seen seen;
static const struct machine *mach;
static int failures;

static void
check(bool ok, const char *what, ...)
{
	va_list ap;

	if (ok)
		return;
	failures++;
	fprintf(stderr, "btref capture: ");
	va_start(ap, what);
	vfprintf(stderr, what, ap);
	va_end(ap);
	fprintf(stderr, "\n");
}

/* ---- the calls whose stacks are captured; none is a tail call ---- */

static volatile int after;

enum { CAP_SIZE = 7520 };

static NOINLINE void
take(void)
{
	int k;

	ONE_CALL
	for (k = 0; k < PRES * POSTS; k++) {
		int pre = k / POSTS, post = k % POSTS;

		seen.rc[pre][post] = lws_backtrace(&seen.si[pre][post], (uint8_t)pre,
						   (uint8_t)post);
	}
	lws_alloc_metadata_gen(CAP_SIZE, seen.comp, sizeof(seen.comp), &seen.adj, &seen.cl);
	after++;
}

static NOINLINE void
nest_a(int inner)
{
	if (inner)
		take();
	after++;
}

static NOINLINE void
nest_b(int inner)
{
	nest_a(inner + 1);
	after++;
}

static NOINLINE void
nest_c(int inner)
{
	nest_b(inner + 1);
	after++;
}

static NOINLINE void
recurse(int more)
{
	if (more > 1)
		recurse(more - 1);
	else
		nest_a(1);
	after++;
}

static NOINLINE void
ping(int more);

static NOINLINE void
pong(int more)
{
	if (more > 1)
		ping(more - 1);
	else
		nest_c(0);
	after++;
}

static NOINLINE void
ping(int more)
{
	if (more > 1)
		pong(more - 1);
	else
		nest_b(0);
	after++;
}

static void just_take(int more) { (void)more; take(); after++; }

static const struct shape {
	const char *name;
	void (*run)(int more);
	int arg;
} shapes[] = {
	{ "plain", just_take, 0 },
	{ "nested", nest_c, 0 },
	{ "recursion-4", recurse, 4 },
	{ "recursion-12", recurse, 12 },
	{ "ping-pong-11", ping, 11 },
	{ "ping-pong-20", ping, 20 },
	{ "recursion-40", recurse, 40 },
};

/* ---- results of lws_backtrace() ---- */

static void
stack_from(struct stack *s, const lws_backtrace_info_t *si, const char *shape, const char *how)
{
	int n;

	memset(s, 0, sizeof(*s));
	snprintf(s->id, sizeof(s->id), "capture/%s/%s", shape, how);
	s->size = CAP_SIZE;
	s->depth = si->sp;
	for (n = 0; n < s->depth; n++)
		s->pcs[n] = si->st[n];
}

static int
record(const struct stack *s)
{
	uint8_t blob[MAX_BLOB];
	struct btv_record r = { s->id, s, blob, lib_encode(blob, s) };

	return btv_record(&r, mach);
}

static int
show_backtraces(const char *shape)
{
	const lws_backtrace_info_t *all = &seen.si[0][0];
	int pre, post, n, rc;
	struct stack s;

	for (pre = 0; pre < PRES; pre++)
		for (post = 0; post < POSTS; post++) {
			const lws_backtrace_info_t *si = &seen.si[pre][post];
			char how[48];

			snprintf(how, sizeof(how), "pre-%d-post-%d", pre, post);
			stack_from(&s, si, shape, how);
			printf("\n# lws_backtrace(&si, %d, %d) returned %d with %d frames\n",
			       pre, post, seen.rc[pre][post], si->sp);
			rc = record(&s);
			if (rc)
				return rc;

			/* pre counts from the innermost end, post from the outermost kept */
			for (n = 0; n < si->sp && n + pre < all->sp; n++)
				check(si->st[n] == all->st[n + pre],
				      "%s: frame %d is not frame %d of the whole stack",
				      s.id, n, n + pre);
			n = seen.si[pre][0].sp;
			if (n > post)	/* lws leaves a stack of up to post frames whole */
				n -= post;
			check(si->sp == n, "%s: %d frames, %d were expected", s.id, si->sp, n);
			/* no frames: a library without unwind tables, erratum 26 */
			check(seen.rc[pre][post] == 0 || seen.si[pre][0].sp == 32 || !all->sp,
			      "%s: failed with %d frames", s.id, si->sp);
		}
	return 0;
}

/* ---- results of lws_alloc_metadata_gen(), in the memory of an allocation ---- */

struct walk {
	const uint8_t *end[4];	/* end pointers of blobs: addresses of their list nodes */
	int found;
};

static int
walk_cb(struct lws_dll2 *d, void *user)
{
	struct walk *w = user;

	if (w->found < 4)
		w->end[w->found] = (const uint8_t *)d;
	w->found++;
	return 0;
}

/* Captures the output of lws_alloc_metadata_dump_stdout(). */
static void
dumped(lws_dll2_owner_t *owner, char *text, size_t cap)
{
	FILE *f = tmpfile();
	int keep = -1;
	size_t got;

	fflush(stdout);
	if (!f || (keep = dup(1)) < 0 || dup2(fileno(f), 1) < 0) {
		perror("btref capture: redirecting standard output");
		exit(EXIT_SELF);
	}
	_lws_alloc_metadata_dump(owner, lws_alloc_metadata_dump_stdout, NULL);
	fflush(stdout);
	if (dup2(keep, 1) < 0) {
		perror("btref capture: standard output");
		exit(EXIT_SELF);
	}
	close(keep);
	rewind(f);
	got = fread(text, 1, cap - 1, f);
	text[got] = '\0';
	fclose(f);
}

/*
 * Reports whether the frames of gen's blob are those of lws_backtrace() called
 * next to it with this pre. from is 1 if frame 0, the call site, differs.
 */
static bool
gen_agrees(const struct naive *n, int pre, int from)
{
	const lws_backtrace_info_t *si = &seen.si[pre][LWS_COMPRESSED_BACKTRACES_SNIP_POST];
	int i;

	if (n->depth != si->sp)
		return false;
	for (i = from; i < n->depth; i++)	/* no machine loses the low 31 bits */
		if (n->pcs[i] % 0x80000000u != si->st[i] % 0x80000000u)
			return false;
	return true;
}

/*
 * gen calls lws_backtrace(), so that the first two frames are theirs and a
 * SNIP_PRE of 2 leaves the caller's frames. If the compiler inlines one in the
 * other, they have one frame, and SNIP_PRE also removes a frame of the caller.
 */
static void
check_gen_frames(const char *id, const struct naive *n)
{
	const int pre = LWS_COMPRESSED_BACKTRACES_SNIP_PRE;

	if (pre < 1 || pre >= PRES || LWS_COMPRESSED_BACKTRACES_SNIP_POST >= POSTS) {
		printf("\n# SNIP_PRE and SNIP_POST of this library are beyond what was taken\n");
		return;
	}
	if (!n->depth)
		printf("\n# stacks are not unwound: no frames are left to compare\n");
	else if (gen_agrees(n, pre - 1, 1))
		printf("\n# lws_backtrace() has its own frame below lws_alloc_metadata_gen()'s\n");
	else if (gen_agrees(n, pre, 0))
		printf("\n# lws_backtrace() is inlined in lws_alloc_metadata_gen(): SNIP_PRE takes\n"
		       "# one frame more of the caller's\n");
	else
		check(false, "%s: gen's frames are not those of lws_backtrace()", id);
}

static int
show_metadata(const char *shape)
{
	const size_t node = sizeof(lws_dll2_t), ptr = sizeof(void *);
	uint8_t *alloc[2], *comp = NULL;
	char line[MAX_LINE], dump[4 * MAX_LINE];
	static struct naive n;
	lws_dll2_owner_t owner;
	struct walk w = { { NULL }, 0 };
	uint16_t complen = 0;
	struct stack s;
	int i, k, rc;
	void *v;

	memset(&owner, 0, sizeof(owner));
	if (naive_read(&n, seen.comp, seen.cl, WORD)) {
		check(false, "%s: the naive reader rejects gen's blob: %s", shape, n.reason);
		return EXIT_SELF;
	}

	memset(&s, 0, sizeof(s));
	snprintf(s.id, sizeof(s.id), "capture/%s/gen", shape);
	s.size = n.size;
	s.depth = n.depth;
	memcpy(s.pcs, n.pcs, sizeof(s.pcs));

	check_gen_frames(s.id, &n);
	check(n.size == CAP_SIZE, "%s: size %llu", s.id, (unsigned long long)n.size);
	check(seen.adj == node + (seen.cl + ptr - 1) / ptr * ptr,
	      "%s: %u more bytes than asked for", s.id, (unsigned int)seen.adj);

	printf("# lws_alloc_metadata_gen() at SNIP_PRE %d, SNIP_POST %d: blob %u bytes, "
	       "list node %u, pointer %u;\n# an allocation grows by %u bytes\n",
	       LWS_COMPRESSED_BACKTRACES_SNIP_PRE, LWS_COMPRESSED_BACKTRACES_SNIP_POST,
	       (unsigned int)seen.cl, (unsigned int)node, (unsigned int)ptr,
	       (unsigned int)seen.adj);

	/* Two allocations, to make a list. */
	for (k = 0; k < 2; k++) {
		alloc[k] = malloc(CAP_SIZE + seen.adj);
		if (!alloc[k]) {
			perror("btref capture");
			exit(EXIT_SELF);
		}
		memset(alloc[k], 0xa5, CAP_SIZE + seen.adj);
		v = alloc[k];
		_lws_alloc_metadata_adjust(&owner, &v, seen.adj, seen.comp,
					   (unsigned int)seen.cl);
		check((uint8_t *)v == alloc[k] + seen.adj, "%s: adjust moved the pointer by %ld",
		      s.id, (long)((uint8_t *)v - alloc[k]));
		if (!k)
			printf("# the user's memory starts %u bytes in: %u padding, %u blob, %u node\n",
			       (unsigned int)((uint8_t *)v - alloc[k]),
			       (unsigned int)(seen.adj - node - seen.cl), (unsigned int)seen.cl,
			       (unsigned int)node);
	}

	/* Read them from memory, by the end pointer alone. */
	_lws_alloc_metadata_dump(&owner, walk_cb, &w);
	check(w.found == 2, "%s: %d allocations in the list, 2 were expected", s.id, w.found);
	for (k = 0; k < w.found && k < 2; k++) {
		size_t len = (size_t)w.end[k][-2] * 256 + w.end[k][-1];

		check(len == seen.cl && !memcmp(w.end[k] - len, seen.comp, len),
		      "%s: allocation %d's blob differs in memory", s.id, k);
	}
	lib_line(line, seen.comp, seen.cl);
	dumped(&owner, dump, sizeof(dump));
	if (strlen(line) <= 3 + 184)	/* it cannot print more */
		for (k = 0; k < 2; k++) {
			size_t len = strlen(line);

			check(!strncmp(dump + (size_t)k * (len + 1), line, len) &&
			      dump[(size_t)k * (len + 1) + len] == '\n',
			      "%s: dump_stdout's line %d differs", s.id, k);
		}

	for (k = 0; k < 2; k++) {
		v = alloc[k] + seen.adj;
		_lws_alloc_metadata_trim(&v, &comp, &complen);
		check(v == (void *)alloc[k], "%s: trim is off by %ld bytes", s.id,
		      (long)((uint8_t *)v - alloc[k]));
		check(comp == alloc[k] + seen.adj - node - seen.cl && complen == seen.cl - 2,
		      "%s: trim's compressed area differs", s.id);
		free(alloc[k]);
	}
	check(owner.count == 0, "%s: %u allocations stay in the list", s.id,
	      (unsigned int)owner.count);

	/*
	 * Record the stack, provided that encoding it again gives the same blob.
	 * Where the machine lost bits, it need not.
	 */
	{
		uint8_t again[MAX_BLOB];
		struct btv_record r = { s.id, &s, seen.comp, seen.cl };
		bool lossy = false;

		for (i = 0; i < s.depth; i++)
			lossy |= WORD == 64 && s.pcs[i] > LOW_BITS;
		if (lossy) {
			printf("# no record of it: on this machine its addresses are lost\n");
			return 0;
		}
		check(lib_encode(again, &s) == seen.cl && !memcmp(again, seen.comp, seen.cl),
		      "%s: gen's blob differs from the stack's", s.id);
		rc = btv_record(&r, mach);
	}
	return rc;
}

int
mode_capture(int argc, char **argv)
{
	const char *source = NULL;
	struct machine m;
	size_t n;
	int rc;

	if (argc == 2 && !strcmp(argv[0], "--source"))
		source = argv[1];
	else if (argc) {
		fprintf(stderr, "btref capture: --source TEXT was expected, not %s\n", argv[0]);
		return EXIT_USAGE;
	}
	machine_probe(&m);
	mach = &m;
	btv_head(source, &m);

	for (n = 0; n < sizeof(shapes) / sizeof(shapes[0]); n++) {
		shapes[n].run(shapes[n].arg);
		rc = show_backtraces(shapes[n].name);
		if (!rc)
			rc = show_metadata(shapes[n].name);
		if (rc)
			return rc;
	}
	if (failures) {
		fprintf(stderr, "btref capture: %d checks failed\n", failures);
		return EXIT_SELF;
	}
	return EXIT_OK;
}
