/* Errata of metadata in the memory of an allocation. */
#include "errata.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__GLIBC__) || defined(__linux__)
#include <malloc.h>
#endif

static volatile int after;

/* ---- 16, 19, 20: metadata ---- */

static void
owner_init(lws_dll2_owner_t *owner)
{
	memset(owner, 0, sizeof(*owner));
}

static NOINLINE size_t
gen_into(uint8_t *buf, size_t room)
{
	size_t adj, cl;

	lws_alloc_metadata_gen(7520, buf, room, &adj, &cl);
	after++;
	return cl;
}

static int
exact_fit(void)
{
	uint8_t buf[MAX_BLOB];
	size_t room, whole = 0, exact = 0, more = 0;
	bool past;

	/* one call site for all calls of gen, so that their stacks are the same */
	ONE_CALL
	for (room = MAX_BLOB; room; room = !whole ? 0 : !exact ? whole : !more ? whole + 1 : 0) {
		size_t got = gen_into(buf, room);

		if (!whole)
			whole = got;
		else if (!exact)
			exact = got;
		else
			more = got;
	}
	memset(buf, 0xa5, sizeof(buf));
	gen_into(buf, 1);
	past = buf[1] != 0xa5;

	did("metadata of %u bytes was generated into buffers of %u, %u and 1 bytes.",
	    (unsigned int)whole, (unsigned int)whole, (unsigned int)whole + 1);
	expected("the first is enough, and of the last nothing beyond it is written.");
	saw("the first gives %u bytes (none fit), the second %u. The buffer of 1 byte %s.",
	    (unsigned int)exact, (unsigned int)more,
	    past ? "has its second byte overwritten: the 00 00 that says so is written unchecked" :
		   "holds");
	return exact == 2 && more == whole && past;
}

static int
parse_pointer(void)
{
	static const struct stack s = { "", 7520, { 0x406651, 0x406852 }, 2 };
	uint8_t blob[MAX_BLOB];
	size_t len = lib_encode(blob, &s);
	size_t adj = sizeof(lws_dll2_t) + (len + sizeof(void *) - 1) / sizeof(void *) *
							sizeof(void *);
	uint8_t *alloc = calloc(1, 64 + adj);
	lws_backtrace_info_t si;
	lws_dll2_owner_t owner;
	char user[256], node[256];
	struct parsed p;
	void *v = alloc;
	int k, ok[2];

	if (!alloc)
		exit(EXIT_SELF);
	owner_init(&owner);
	_lws_alloc_metadata_adjust(&owner, &v, adj, blob, (unsigned int)len);
	/*
	 * With the user's pointer, the length is read from the last two bytes of
	 * the list node, here those of a small, known address.
	 */
	((lws_dll2_t *)(void *)((uint8_t *)v - sizeof(lws_dll2_t)))->owner = NULL;
	for (k = 0; k < 2; k++) {
		memset(&si, 0, sizeof(si));
		memset(&p, 0, sizeof(p));
		p.rc = lws_alloc_metadata_parse(&si, (uint8_t *)v - (k ? sizeof(lws_dll2_t) : 0));
		p.depth = si.sp;
		p.size = si.asize;
		p.pcs[0] = si.st[0];
		p.pcs[1] = si.st[1];
		parsed_text(&p, k ? node : user, sizeof(user));
		ok[k] = !p.rc && p.depth == 2 && p.size == 7520;
	}
	did("lws_alloc_metadata_parse() was given the pointer that the user of an allocation has, "
	    "then the address of the list node before it.");
	expected("the stack from the first: the header calls the parameter adjusted_alloc, "
		 "\"pointer to adjusted, user allocation start\".");
	saw("%s from the first, %s from the second.", user, node);
	free(alloc);
	return !ok[0] && ok[1];
}

static int
alignment(void)
{
	const size_t natural = _Alignof(max_align_t);
	size_t len, misaligned = 0, lens = 0;

	for (len = 0; len < sizeof(size_t) * 8; len++) {
		size_t adj = 0, cl = 0;
		uint8_t *alloc, comp[MAX_BLOB] = { 0 };
		lws_dll2_owner_t owner;
		void *v;

		lws_alloc_metadata_gen((size_t)1 << len, comp, sizeof(comp), &adj, &cl);
		v = alloc = malloc(64 + adj);
		if (!alloc)
			exit(EXIT_SELF);
		owner_init(&owner);
		_lws_alloc_metadata_adjust(&owner, &v, adj, comp, (unsigned int)cl);
		misaligned += (uintptr_t)v % natural != 0 && (uintptr_t)alloc % natural == 0;
		lens++;
		free(alloc);
	}
	did("allocations of malloc() were given metadata, of sizes with 1 to %u significant bits.",
	    (unsigned int)lens);
	expected("memory aligned for any type, to %u bytes, as malloc() gives it: the user is to see "
		 "\"what he asked for\".", (unsigned int)natural);
	saw("of %u, %u are not so aligned.", (unsigned int)lens, (unsigned int)misaligned);
	if (!misaligned && natural <= sizeof(void *))
		return not_here("no type needs more alignment than a pointer on this machine");
	return misaligned > 0;
}

/* ---- 2, 5: dump_stdout ---- */

struct long_blob {
	/* the blob ends where the node begins */
	uint8_t before[MAX_BLOB];
	lws_dll2_t node;
};

/* Fills the stack memory of later calls with the letter X. */
static NOINLINE void
dirty_stack(void)
{
	volatile char x[2048];
	size_t n;

	for (n = 0; n < sizeof(x); n++)
		x[n] = 'X';
	x[sizeof(x) - 1] = 0;
	after += x[17];
}

static int
dump_fn(void *arg, int fd)
{
	struct long_blob *b = arg;

	if (dup2(fd, 1) < 0)
		exit(EXIT_SELF);
	dirty_stack();
	lws_alloc_metadata_dump_stdout(&b->node, NULL);
	fflush(stdout);
	return 0;
}

static int
long_dump(void)
{
	struct stack s = { "", 0x1d60, { 0 }, 31 };
	static struct long_blob b;
	static struct outcome o;
	uint8_t blob[MAX_BLOB];
	char line[MAX_LINE], words[64];
	size_t len, same = 0, got;
	int i;

	for (i = 0; i < 31; i++)	/* alternate between distant modules */
		s.pcs[i] = WORD == 64 ? (i % 2 ? 0x7f0000000000 : 0x550000000000) +
					(uint64_t)i * 0x1234567 :
					((i % 2 ? 0xf0000000 : 0x08000000) + (uint64_t)i * 0x1357913);
	len = lib_encode(blob, &s);
	memcpy(b.before + sizeof(b.before) - len, blob, len);
	lib_line(line, blob, len);
	child_run(&o, dump_fn, &b, 10);
	got = o.len && o.data[o.len - 1] == '\n' ? o.len - 1 : o.len;
	while (same < got && same < strlen(line) && o.data[same] == (uint8_t)line[same])
		same++;

	did("a blob of %u bytes, 31 frames that alternate between far modules, was dumped by "
	    "lws_alloc_metadata_dump_stdout().", (unsigned int)len);
	expected("a line of %u characters, ~m# and base64.", (unsigned int)strlen(line));
	if (o.how == CHILD_DONE)
		saw("%u characters: the first %u are right (~m# and %u of base64), then follow %u bytes "
		    "of whatever was in memory, up to a NUL byte.", (unsigned int)got,
		    (unsigned int)same, (unsigned int)same - 3, (unsigned int)(got - same));
	else
		saw("%s.", outcome_text(&o, words, sizeof(words)));
	return o.how != CHILD_DONE || same < strlen(line);
}

static int
no_room(void)
{
	static struct long_blob empty;	/* 00 00 before a node */
	static struct outcome o;
	uint8_t comp[8], *blob = NULL, *alloc;
	lws_dll2_owner_t owner;
	size_t adj = 0, cl = 0;
	uint16_t complen = 0;
	long off;
	void *v;

	owner_init(&owner);
	lws_alloc_metadata_gen(7520, comp, 2, &adj, &cl);
	alloc = malloc(64 + adj);
	if (!alloc)
		exit(EXIT_SELF);
	memset(alloc, 0xa5, 64 + adj);
	v = alloc;
	_lws_alloc_metadata_adjust(&owner, &v, adj, comp, (unsigned int)cl);
	_lws_alloc_metadata_trim(&v, &blob, &complen);
	off = (long)((uint8_t *)v - alloc);
	free(alloc);
	child_run(&o, dump_fn, &empty, 10);

	did("metadata was generated into a buffer too small for it, put before an allocation, and "
	    "trimmed off again.");
	expected("the allocation's own pointer again. The header: \"the compressed part is set to "
		 "empty (total length 2 to carry the 00 00 length)\"; the README: the length is "
		 "\"including the 16-bit length itself\", which would be 00 02.");
	saw("%u bytes, %02x %02x; trim's pointer is %ld bytes beyond the allocation's, where "
	    "free() would fail, and its length is %u. Dumped, it is the line %.*s.",
	    (unsigned int)cl, comp[0], comp[1], off, complen,
	    o.len ? (int)o.len - 1 : 0, (const char *)o.data);
	return cl == 2 && off != 0 && complen == 65534;
}

/* ---- 6: the library's own allocator ---- */

#if defined(LWS_WITH_ALLOC_METADATA_LWS)
/* exported, but not in the public header; absent from a shared library */
extern void *lws_realloc(void *ptr, size_t size, const char *reason) __attribute__((weak));

struct found {
	size_t usable, blob, size;
};

static int
measure_cb(struct lws_dll2 *d, void *user)
{
	const uint8_t *end = (const uint8_t *)d;
	const size_t ptr = sizeof(void *);
	struct found *f = user;
	lws_backtrace_info_t si;

	f->blob = (size_t)end[-2] * 256 + end[-1];
	if (lws_alloc_metadata_parse(&si, end))
		return 0;
	f->size = si.asize;
	f->usable = malloc_usable_size((void *)(uintptr_t)(end - (f->blob + ptr - 1) / ptr * ptr));
	return 0;
}

static int
realloc_fn(void *arg, int fd)
{
	void *p = lws_realloc(NULL, 100, "btref");

	(void)arg;
	(void)fd;
	close(2);	/* the C library prints an error */
	p = lws_realloc(p, 5000, "btref");
	return p ? 0 : 1;
}

static int
own_allocator(void)
{
	static const uint8_t data[400];
	struct lws_buflist *list = NULL;
	struct found f = { 0, 0, 0 };
	static struct outcome o;
	size_t adj;
	char words[64];

	if (lws_buflist_append_segment(&list, data, sizeof(data)) < 0)
		exit(EXIT_SELF);
	_lws_alloc_metadata_dump_lws(measure_cb, &f);
	adj = sizeof(lws_dll2_t) + (f.blob + sizeof(void *) - 1) / sizeof(void *) * sizeof(void *);
	o.how = CHILD_DONE;
	if (lws_realloc)
		child_run(&o, realloc_fn, NULL, 10);

	did("a buffer list made the library allocate; then lws_realloc() was called to allocate "
	    "100 bytes, and to make them 5000.");
	expected("an allocation of %u + %u bytes, what was asked for and the metadata; then one "
		 "of 5000.", (unsigned int)f.size, (unsigned int)adj);
	saw("%u usable bytes: the metadata's %u were added twice. %s%s.", (unsigned int)f.usable,
	    (unsigned int)adj, lws_realloc ? "When it was to grow, " :
	    "lws_realloc() is not exported here", lws_realloc ?
	    outcome_text(&o, words, sizeof(words)) : "");
	if (lws_realloc && o.how == CHILD_SIGNAL)
		saw("realloc() is passed the adjusted pointer, which malloc() never gave.");
	return f.usable >= f.size + 2 * adj;
}
#else
static int
own_allocator(void)
{
	did("nothing.");
	return not_here("this libwebsockets was built without LWS_WITH_ALLOC_METADATA_LWS");
}
#endif

const struct erratum errata_memory[] = {
	{ 2, "metadata that does not fit gets length 0, and trim a wrong pointer for it", no_room },
	{ 5, "lws_alloc_metadata_dump_stdout() cuts after 184 characters and appends rubbish",
	  long_dump },
	{ 6, "the library's own allocator adds the metadata twice, and reallocates a wrong pointer",
	  own_allocator },
	{ 16, "metadata that fits exactly is refused, and a buffer of 1 byte gets 2", exact_fit },
	{ 19, "lws_alloc_metadata_parse() wants another pointer than the header says",
	  parse_pointer },
	{ 20, "memory with metadata is aligned to a pointer only", alignment },
	{ 0, NULL, NULL }
};
