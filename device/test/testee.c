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

/* encode answers encode, user-encode and bare-encode. */
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
	if (!strcmp(op, "bare-encode")) {
		uint8_t bare[LWSBT_BLOB_MAX] = { 0 };
		struct lwsbt_writer w;
		size_t n;

		lwsbt_writer_init(&w, bare, sizeof bare);
		lwsbt_put_stack(&w, &s, how);
		n = lwsbt_bits(&w);
		lwsbt_put(&w, 0, (8 - n % 8) % 8);
		printf("bits %s %lu ", id, (unsigned long)n);
		put_hex(bare, (n + 7) / 8);
		return;
	}
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

	for (unsigned n = 0; n < 16; n++)
		v[n] = absent;
	while (user && *user >= '0' && *user <= '9') {
		char *end;
		unsigned long tag = strtoul(user, &end, 10);

		v[tag & 15] = strtoull(end + 1, &end, 16);
		user = *end == ',' ? end + 1 : NULL;
	}
	if (!machine || !search || v[1] == absent || v[5] > LWSBT_MOVED ||
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
	} else if (!strcmp(op, "bare")) {
		e = lwsbt_decode_bare(&s, p, len, word);
		if (e != LWSBT_OK) {
			put_reject(id, e, NULL);
			return;
		}
		printf("bare %s bits=%lu", id, (unsigned long)s.end);
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

#if LWSBT_WORD_BITS == 64
#define MACHINES "exact32,exact64,wrap64"
#else
#define MACHINES "exact32"
#endif

int main(void)
{
	static char line[4 * LWSBT_LENGTH_MAX];
	static const char *const ops[] = { "decode", "end", "salvage", "mline", "bline", "bare", "user" };

	while (fgets(line, sizeof line, stdin) && strcmp(line, "quit\n")) {
		char op[16], id[256], *hex;
		size_t len, i;
		int at = 0;
		uint8_t *p;

		if (!strncmp(line, "hello ", 6)) {
			puts("hello btp=1 name=lwsbt-device version=" LWSBT_VERSION
				" ops=decode,end,salvage,mline,bline,bare,user,encode,bare-encode,user-encode,event-encode,format machines=" MACHINES);
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
		} else if (!strcmp(op, "encode") || !strcmp(op, "user-encode") || !strcmp(op, "bare-encode")) {
			encode(op, id, hex);
		} else if (!strcmp(op, "event-encode")) {
			event_encode(id, hex);
		} else if (!strcmp(op, "format")) {
			format(id, hex);
		} else {
			printf("skip %s unsupported\n", id);
		}
		fflush(stdout);
	}
	return 0;
}
