/*
 * The library behind BTP/1 (conformance/README.md): reads requests, a line each,
 * and answers them. Blobs stand in buffers of their exact size, so that a tool
 * that watches memory sees any access beyond.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lwsbt.h"

static void *need(void *p)
{
	if (!p) {
		fputs("testee: out of memory\n", stderr);
		exit(3);
	}
	return p;
}

/* find returns what follows key in the request, or NULL. */
static const char *find(const char *request, const char *key)
{
	const char *at = strstr(request, key);

	return at ? at + strlen(key) : NULL;
}

static unsigned nibble(char c)
{
	return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* unhex returns the bytes of a word of hex digits, "-" for none, in memory of that
 * size. */
static uint8_t *unhex(const char *word, size_t *len)
{
	size_t n = strspn(word, "0123456789abcdef") / 2;
	uint8_t *p = need(malloc(n ? n : 1));

	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(nibble(word[2 * i]) << 4 | nibble(word[2 * i + 1]));
	*len = n;
	if (n == 0) { /* memory of size 0, which a read of even one byte exceeds */
		free(p);
		p = malloc(0);
	}
	return p;
}

static void put_hex(const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	if (len == 0)
		putchar('-');
	while (len--)
		printf("%02x", *p++);
	putchar('\n');
}

static void put_pcs(const struct lwsbt_stack *s)
{
	printf(" pcs=%s", s->depth ? "" : "-");
	for (unsigned n = 0; n < s->depth; n++)
		printf("%s%llx", n ? "," : "", (unsigned long long)s->pc[n]);
	putchar('\n');
}

static void put_reject(const char *id, enum lwsbt_result e, const struct lwsbt_stack *s)
{
	printf("reject %s %s", id, lwsbt_reason(e));
	if (s)
		printf(" bit=%lu", (unsigned long)s->end);
	putchar('\n');
}

static void put_stack(const char *id, enum lwsbt_result e, const struct lwsbt_stack *s, int bits)
{
	if (e != LWSBT_OK) {
		put_reject(id, e, bits ? s : NULL);
		return;
	}
	printf("ok %s size=%llu", id, (unsigned long long)s->size);
	put_pcs(s);
}

/* get_stack reads size= and pcs= of a request. It returns the bits of the widest
 * value, or 65 if there are too many frames. */
static int get_stack(const char *request, struct lwsbt_stack *s)
{
	const char *size = find(request, "size="), *p = find(request, "pcs=");
	unsigned long long v = size ? strtoull(size, NULL, 10) : 0, all = v;

	memset(s, 0, sizeof *s);
	s->size = (lwsbt_word)v;
	while (p && *p != '-' && *p != '\n' && *p != ' ') {
		char *end;

		if (s->depth == LWSBT_DEPTH_MAX)
			return 65;
		v = strtoull(p, &end, 16);
		all |= v;
		s->pc[s->depth++] = (lwsbt_word)v;
		p = *end == ',' ? end + 1 : end;
	}
	return all >> 32 ? 64 : 32;
}

/* encode answers encode and user-encode. */
static void encode(const char *op, const char *id, const char *request)
{
	const char *machine = find(request, "machine="), *search = find(request, "search=");
	struct lwsbt_stack s;
	int bits = get_stack(request, &s);
	unsigned how = 0;
	size_t len;
	uint8_t *blob;

	if (!machine || !search) {
		printf("skip %s without machine or search\n", id);
		return;
	}
	if (bits > 64) {
		printf("reject %s frames\n", id);
		return;
	}
	if (bits > LWSBT_WORD_BITS || (bits > 32 && !strncmp(machine, "exact32 ", 8))) {
		printf("reject %s word\n", id);
		return;
	}
	if (!strncmp(search, "lws", 3))
		how |= LWSBT_SEARCH_LWS;
	if (!strncmp(machine, "wrap64 ", 7))
		how |= LWSBT_WRAP64;
	if (!strcmp(op, "user-encode")) {
		uint8_t bytes[LWSBT_BLOB_MAX + 16 * LWSBT_USER_MAX];
		const char *user = find(request, "user=");
		struct lwsbt_writer w;

		lwsbt_writer_init(&w, bytes, sizeof bytes);
		lwsbt_put_stack(&w, &s, how);
		lwsbt_put_value(&w, s.size, how);
		while (user && *user >= '0' && *user <= '9') {
			char *end;
			unsigned long tag = strtoul(user, &end, 10);

			lwsbt_put_user(&w, (unsigned)tag, strtoull(end + 1, &end, 16));
			user = *end == ',' ? end + 1 : NULL;
		}
		printf("blob %s ", id);
		put_hex(bytes, lwsbt_finish(&w));
		return;
	}
	len = lwsbt_encode(NULL, 0, &s, how);
	blob = need(malloc(len));
	if (lwsbt_encode(blob, len, &s, how) != len) {
		fputs("testee: the blob is longer than it was measured\n", stderr);
		exit(3);
	}
	printf("blob %s ", id);
	put_hex(blob, len);
	free(blob);
}

/* event_encode answers event-encode, for what struct lwsbt_event can hold. */
static void event_encode(const char *id, const char *request)
{
	const char *machine = find(request, "machine="), *search = find(request, "search=");
	const char *user = find(request, "user=");
	uint64_t v[16], absent = LWSBT_NONE;
	uint8_t blob[LWSBT_EVENT_MAX];
	struct lwsbt_event e;
	struct lwsbt_stack s;
	int bits = get_stack(request, &s);
	unsigned how = 0;
	int none = 0;	/* a field is 2^64 - 1, which lwsbt.h takes as no value */

	for (unsigned n = 0; n < 16; n++)
		v[n] = absent;
	while (user && *user >= '0' && *user <= '9') {
		char *end;
		unsigned long tag = strtoul(user, &end, 10);

		v[tag & 15] = strtoull(end + 1, &end, 16);
		none |= v[tag & 15] == absent;
		user = *end == ',' ? end + 1 : NULL;
	}
	if (!machine || !search || none || v[1] == absent || v[5] > LWSBT_MOVED ||
	    (v[6] == absent) != (v[5] != LWSBT_MOVED)) {
		printf("skip %s not an event of lwsbt.h\n", id);
		return;
	}
	if (bits > 64) {
		printf("reject %s frames\n", id);
		return;
	}
	if (bits > LWSBT_WORD_BITS || (bits > 32 && !strncmp(machine, "exact32 ", 8))) {
		printf("reject %s word\n", id);
		return;
	}
	if (!strncmp(search, "lws", 3))
		how |= LWSBT_SEARCH_LWS;
	if (!strncmp(machine, "wrap64 ", 7))
		how |= LWSBT_WRAP64;
	e.kind = (enum lwsbt_event_kind)v[5];
	e.address = v[1];
	e.old = v[6];
	e.time = v[2];
	e.thread = v[3];
	e.sequence = v[4];
	printf("blob %s ", id);
	put_hex(blob, lwsbt_encode_event(blob, sizeof blob, &s, &e, how));
}

static void format(const char *id, const char *request)
{
	static char buf[LWSBT_LINE_LEN(LWSBT_LENGTH_MAX) + 2];
	struct lwsbt_text text = { buf, sizeof buf, 0 };
	struct lwsbt_out out = { lwsbt_line_text, &text };
	const char *hex = find(request, "blob=");
	struct lwsbt_stack s;
	int bits = hex ? 0 : get_stack(request, &s);

	if (hex) {
		size_t len;
		uint8_t *blob = unhex(hex, &len);

		lwsbt_line(&out, blob, len);
		free(blob);
	} else if (bits > 64) {
		printf("reject %s frames\n", id);
		return;
	} else if (bits <= LWSBT_WORD_BITS) {
		lwsbt_line_decoded(&out, &s);
	} else {
		printf("skip %s values over %d bits\n", id, LWSBT_WORD_BITS);
		return;
	}
	printf("text %s ", id);
	put_hex(buf, text.len - 1); /* without the line end */
}

/* answer answers a request about the bytes at p. */
static void answer(const char *op, const char *id, const char *request, const uint8_t *p,
	size_t len)
{
	const char *w = find(request, "word=");
	unsigned word = w && !strncmp(w, "32", 2) ? 32 : 64;
	struct lwsbt_stack s;
	enum lwsbt_result e;

	memset(&s, 0, sizeof s);
	/* What means the same at word 32, the runner asks at word 32. */
	if (w && word > LWSBT_WORD_BITS) {
		printf("skip %s words of %d bits\n", id, LWSBT_WORD_BITS);
		return;
	}
	if (!strcmp(op, "decode")) {
		e = lwsbt_decode(&s, p, len, word);
		put_stack(id, e, &s, 1);
	} else if (!strcmp(op, "end")) {
		e = lwsbt_decode_at_end(&s, len ? p + len : p, len, word, NULL, NULL);
		put_stack(id, e, &s, 0);
	} else if (!strcmp(op, "salvage")) {
		unsigned depth;
		int sized;

		e = lwsbt_salvage(&s, p, len, word, &depth, &sized);
		if (e != LWSBT_OK) {
			put_reject(id, e, NULL);
			return;
		}
		printf("part %s depth=%u size=", id, depth);
		if (sized)
			printf("%llu", (unsigned long long)s.size);
		else
			putchar('-');
		put_pcs(&s);
	} else if (!strcmp(op, "user")) {
		uint64_t v, values[16] = { 0 };
		unsigned tag = 1, given = 0;
		size_t pos;

		e = lwsbt_decode(&s, p, len, word);
		pos = s.end;
		while (e == LWSBT_OK && tag != LWSBT_TAG_END) {
			e = lwsbt_user(p, len, &pos, &tag, &v);
			if (e == LWSBT_OK && !(given & 1u << tag))
				values[tag] = v; /* of a tag that is given twice, the first counts */
			given |= 1u << tag;
		}
		if (e != LWSBT_OK) {
			put_reject(id, e, NULL);
			return;
		}
		printf("ok %s size=%llu pcs=%s", id, (unsigned long long)s.size, s.depth ? "" : "-");
		for (unsigned n = 0; n < s.depth; n++)
			printf("%s%llx", n ? "," : "", (unsigned long long)s.pc[n]);
		for (unsigned n = 1, first = 1; n <= LWSBT_TAG_OLD; n++) /* others are skipped */
			if (given & 1u << n) {
				printf("%s%u:%llx", first ? " user=" : ",", n, (unsigned long long)values[n]);
				first = 0;
			}
		putchar('\n');
	} else if (!strcmp(op, "bline")) {
		e = lwsbt_parse_decoded(&s, (const char *)p, len);
		if (e == LWSBT_COUNT) {
			printf("skip %s words of %d bits\n", id, LWSBT_WORD_BITS);
			return;
		}
		put_stack(id, e, &s, 0);
	} else { /* mline */
		const char *reading = find(request, "reading=");
		uint8_t *blob = need(malloc(len + 1));
		size_t n;

		e = lwsbt_parse_line(blob, len, &n, (const char *)p, len,
			reading && !strncmp(reading, "lenient", 7));
		if (e == LWSBT_OK)
			e = lwsbt_decode(&s, blob, n, word);
		put_stack(id, e, &s, 0);
		free(blob);
	}
}

/* ------------------------------------------------------------------ call paths */

/* Offsets of frames are of this code: addresses elsewhere are escaped. */
#define ALL_CODE ((lwsbt_word)1 << (LWSBT_WORD_BITS - 1))
static const struct lwsbt_range all_code = { ALL_CODE, ALL_CODE + (1 << 27) };
static const struct lwsbt_code code = { &all_code, 1, 0 };

/* word reads a number of a base; it reports whether the library's words hold it. */
static int word(const char **at, int base, lwsbt_word *v)
{
	char *end;
	unsigned long long x = strtoull(*at, &end, base);

	*at = end;
	*v = (lwsbt_word)x;
	return *v == x;
}

/* get_path reads BASE:[NAME/]FRAME/FRAME. It returns 0 for what the library does not write. */
static int get_path(const char **at, struct lwsbt_path *p, lwsbt_word *pc)
{
	int fits = 1, frames;

	p->base = (uint8_t)strtoul(*at, NULL, 10);
	p->pc = pc;
	p->depth = 0;
	p->outer = 0;
	*at = strchr(*at, ':') + 1;
	frames = **at != '\0' && !strchr(" ;\n", **at);
	if (p->base == LWSBT_PATH_NAMED) {
		char *end;

		p->outer = (uint32_t)strtoul(*at, &end, 16);
		*at = end;
		frames = *end == '/';
		*at += frames;
	}
	for (; frames; frames = **at == '/', *at += frames) {
		int escaped = **at == '@';

		if (p->depth == LWSBT_PATH_DEPTH)
			return 0;
		*at += escaped;
		fits &= word(at, 16, &pc[p->depth]);
		if (!escaped) {
			fits &= pc[p->depth] < 1 << 27;
			pc[p->depth] += ALL_CODE;
		} else {
			fits &= lwsbt_offset(&code, pc[p->depth]) == LWSBT_NO_OFFSET;
		}
		p->depth++;
	}
	return fits;
}

/* key reads the number after a key of request; 0 if there is none. */
static lwsbt_word key(const char *request, const char *name)
{
	const char *at = find(request, name);
	lwsbt_word v = 0;

	if (at)
		word(&at, 10, &v);
	return v;
}

static void path_encode(const char *id, const char *request)
{
	static char buf[1 << 20];
	static lwsbt_word pc[LWSBT_PATH_DEPTH];
	struct lwsbt_text text = { buf, sizeof buf, 0 };
	struct lwsbt_out to = { lwsbt_line_text, &text };
	static struct lwsbt_paths w;
	const char *at = request;
	int fits;

	memset(&w, 0, sizeof w);
	w.out = &to;
	w.code = &code;
	w.flags = (uint8_t)key(request, "flags=");
	w.dump = (uint32_t)key(request, "dump=");
	w.lines = (uint32_t)key(request, "seq=");
	w.max = (uint8_t)key(request, "max=");
	fits = !(w.flags & ~(LWSBT_PATH_EVER | LWSBT_PATH_PEAK));
	while (fits && (at = strchr(at, ' ')) != NULL) {
		struct lwsbt_path p;
		lwsbt_word v[5];
		unsigned n = 0;

		at++;
		if (*at < '0' || *at > '2' || at[1] != ':')
			continue;
		fits = get_path(&at, &p, pc);
		while (fits && (*at == ';' || *at == ',')) {
			at++;
			if (!strncmp(at, "def", 3)) {
				at += 3;
				continue;
			}
			if (*at > '9')
				at = strchr(at, '=') + 1;
			fits = word(&at, 10, &v[n]) && (n > 0 || v[0] + 1 > 0);
			n++;
		}
		if (fits && p.depth > 31) { /* deeper than a device's: a path that it must refuse is possible */
			unsigned depth = p.depth;

			p.depth = 31;
			fits = lwsbt_name(&code, &p) > 1;
			p.depth = depth;
		}
		if (fits)
			lwsbt_paths_add(&w, &p, v, n);
	}
	if (!fits) {
		printf("skip %s beyond the library's words, or what it writes\n", id);
		return;
	}
	lwsbt_paths_flush(&w);
	printf("text %s ", id);
	put_hex(buf, text.len ? text.len - 1 : 0); /* without the last line end */
}

static void path_name(const char *id, const char *request)
{
	static lwsbt_word pc[LWSBT_PATH_DEPTH];
	struct lwsbt_path p;

	if (get_path(&request, &p, pc))
		printf("name %s %08lx\n", id, (unsigned long)lwsbt_name(&code, &p));
	else
		printf("skip %s beyond the library's words\n", id);
}

/* code_map answers offsets and addresses. */
static void code_map(const char *op, const char *id, const char *request)
{
	struct lwsbt_range ranges[16];
	struct lwsbt_code c = { ranges, 0, (uint8_t)key(request, "shift=") };
	const char *at = find(request, "code=");
	lwsbt_word v = 0, sum = 0;
	int fits = at != NULL, more = fits && *at > ' ' && *at != '-', first = 1;

	for (; fits && more; more = *at == ',', at += more) {
		struct lwsbt_range *r = &ranges[c.count];

		fits = c.count < 16 && word(&at, 16, &v);
		r->start = v;
		at++;
		fits &= word(&at, 16, &v);
		r->end = r->start + v;
		sum += v >> c.shift;
		/* the code of a device: no overlap, and whole units */
		fits &= r->end > r->start && (v & (((lwsbt_word)1 << c.shift) - 1)) == 0;
		for (unsigned i = 0; i < c.count; i++)
			fits &= r->start >= ranges[i].end || r->end <= ranges[i].start;
		c.count++;
	}
	at = fits ? strchr(at, ' ') : NULL;
	if (!at) {
		printf("skip %s not the code of a device\n", id);
		return;
	}
	/* the answer is one line: all of it, or skip */
	for (const char *p = ++at; fits && *p > ' '; p += *p == ',') {
		int escaped = *p == '@';

		p += escaped;
		fits = word(&p, 16, &v);
	}
	if (!fits) {
		printf("skip %s words of %d bits\n", id, LWSBT_WORD_BITS);
		return;
	}
	printf("%s %s ", op, id);
	for (; *at > ' '; at += *at == ',', first = 0) {
		int escaped = *at == '@';
		uint32_t x;

		at += escaped;
		word(&at, 16, &v);
		if (!first)
			putchar(',');
		if (!strcmp(op, "offsets")) {
			x = lwsbt_offset(&c, v);
			if (x == LWSBT_NO_OFFSET)
				printf("@%llx", (unsigned long long)v);
			else
				printf("%lx", (unsigned long)x);
		} else if (escaped) {
			printf("%llx", (unsigned long long)v);
		} else if (v < sum) {
			printf("%llx", (unsigned long long)lwsbt_address(&c, (uint32_t)v));
		} else {
			putchar('?');
		}
	}
	putchar('\n');
}

#if LWSBT_WORD_BITS == 64
#define MACHINES "exact32,exact64,wrap64"
#else
#define MACHINES "exact32"
#endif

int main(void)
{
	static char line[4 * LWSBT_LENGTH_MAX];
	static const char *const ops[] = { "decode", "end", "salvage", "mline", "bline", "user" };

	while (fgets(line, sizeof line, stdin) && strcmp(line, "quit\n")) {
		char op[16], id[256], *hex;
		size_t len, i;
		int at = 0;
		uint8_t *p;

		if (!strncmp(line, "hello ", 6)) {
			puts("hello btp=1 name=lwsbt-device version=" LWSBT_VERSION
				" ops=decode,end,salvage,mline,bline,user,encode,user-encode,event-encode,format,pencode,name,offsets,addresses machines=" MACHINES);
			fflush(stdout);
			continue;
		}
		if (sscanf(line, "%15s %255s %n", op, id, &at) < 2)
			continue;
		hex = line + at;
		for (i = 0; i < sizeof ops / sizeof *ops && strcmp(op, ops[i]); i++)
			;
		if (i < sizeof ops / sizeof *ops) {
			p = unhex(hex, &len);
			answer(op, id, hex, p, len);
			free(p);
		} else if (!strcmp(op, "encode") || !strcmp(op, "user-encode")) {
			encode(op, id, hex);
		} else if (!strcmp(op, "event-encode")) {
			event_encode(id, hex);
		} else if (!strcmp(op, "format")) {
			format(id, hex);
		} else if (!strcmp(op, "pencode")) {
			path_encode(id, hex);
		} else if (!strcmp(op, "name")) {
			path_name(id, hex);
		} else if (!strcmp(op, "offsets") || !strcmp(op, "addresses")) {
			code_map(op, id, hex);
		} else {
			printf("skip %s unsupported\n", id);
		}
		fflush(stdout);
	}
	return 0;
}
