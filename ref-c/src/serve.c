/*
 * Mode serve: the library as a BTP/1 testee. It decodes in this process,
 * so that a crash of the library is a crash of the testee.
 *
 * lws_alloc_metadata_parse() is not given a length. As the library's own decoder
 * tool does, `decode` and `mline` first compare the length field with the number
 * of bytes; `end` does not.
 */
#include "btref.h"

#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

struct request {
	char *word[40];	/* operation, ID and arguments */
	int words;
	unsigned long line;
};

static const char *
value_of(const struct request *r, const char *key)
{
	size_t len = strlen(key);
	int n;

	for (n = 2; n < r->words; n++)
		if (!strncmp(r->word[n], key, len) && r->word[n][len] == '=')
			return r->word[n] + len + 1;
	return NULL;
}

static int
bad(const struct request *r, const char *what)
{
	fprintf(stderr, "btref serve: standard input, line %lu: %s\n", r->line, what);
	return EXIT_USAGE;
}

static int
skip(const struct request *r)
{
	printf("skip %s unsupported\n", r->word[1]);
	return 0;
}

/* The library takes 32 frames; more are for the caller to refuse. */
static int
refuse(const struct request *r)
{
	printf("reject %s frames the caller's check\n", r->word[1]);
	return 0;
}

/* Returns the bytes of hex digits or "-", NULL if malformed. The caller frees them. */
static uint8_t *
hex_bytes(const char *hex, size_t *len)
{
	size_t n = strlen(hex), i;
	uint8_t *p = malloc(n / 2 + 1);

	if (!p) {
		perror("btref serve");
		exit(EXIT_SELF);
	}
	*len = 0;
	if (!strcmp(hex, "-"))
		return p;
	for (i = 0; i + 1 < n; i += 2) {
		uint64_t v;

		if (read_number(hex + i, hex + i + 2, 16, &v))
			break;
		p[(*len)++] = (uint8_t)v;
	}
	if (i != n) {
		free(p);
		return NULL;
	}
	return p;
}

static int
other_word(const struct request *r)
{
	const char *w = value_of(r, "word");

	return strcmp(w ? w : "64", WORD == 64 ? "64" : "32");
}

static void
answer_parse(const struct request *r, const uint8_t *blob, size_t len)
{
	struct parsed p;

	lib_parse(&p, blob, len);
	if (p.rc)
		printf("reject %s %s\n", r->word[1], p.ref_err ? "back" : "truncated");
	else {
		printf("ok %s size=%llu pcs=", r->word[1], (unsigned long long)p.size);
		pcs_print(stdout, p.pcs, p.depth > 32 ? 32 : p.depth);
		printf("\n");
	}
}

static void
answer_blob(const struct request *r, const uint8_t *blob, size_t len)
{
	if (len < 2)
		printf("reject %s short the caller's check\n", r->word[1]);
	else if ((size_t)blob[len - 2] * 256 + blob[len - 1] != len)
		printf("reject %s length the caller's check\n", r->word[1]);
	else
		answer_parse(r, blob, len);
}

static int
op_decode(const struct request *r)
{
	uint8_t *blob;
	size_t len;

	if (r->words < 3)
		return bad(r, "a blob in hex was expected after the id");
	blob = hex_bytes(r->word[2], &len);
	if (!blob)
		return bad(r, "a blob in hex, two digits a byte, was expected");
	if (len > 65536 || other_word(r))
		skip(r);
	else if (!strcmp(r->word[0], "decode"))
		answer_blob(r, blob, len);
	else if (len < 2)	/* the library would read before its memory */
		printf("reject %s short the caller's check\n", r->word[1]);
	else
		answer_parse(r, blob, len);
	free(blob);
	return 0;
}

/* The library has only a lenient reader. */
static int
op_mline(const struct request *r)
{
	const char *reading = value_of(r, "reading");
	uint8_t *text, *blob;
	size_t len;
	char *at;
	int n;

	if (r->words < 3)
		return bad(r, "a line in hex was expected after the id");
	text = hex_bytes(r->word[2], &len);
	if (!text)
		return bad(r, "a line in hex, two digits a byte, was expected");
	if (!reading || strcmp(reading, "lenient") || other_word(r) || len > 65536) {
		free(text);
		return skip(r);
	}
	at = (char *)text;
	if (len >= 3 && at[0] == '~' && at[2] == '#') {	/* as in the library's tool */
		at += 3;
		len -= 3;
	}
	blob = malloc(len + 4);
	if (!blob) {
		perror("btref serve");
		exit(EXIT_SELF);
	}
	n = lws_b64_decode_string_len(at, (int)len, (char *)blob, (int)len + 4);
	if (n <= 0)
		printf("reject %s base64\n", r->word[1]);
	else
		answer_blob(r, blob, (size_t)n);
	free(blob);
	free(text);
	return 0;
}

static int
op_encode(const struct request *r, const struct machine *m)
{
	const char *machine = value_of(r, "machine"), *search = value_of(r, "search"),
		   *size = value_of(r, "size"), *pcs = value_of(r, "pcs"), *why;
	uint8_t blob[MAX_BLOB];
	struct stack s = { .depth = 0 };
	size_t len;
	int n;

	if (!size || read_number(size, size + strlen(size), 10, &s.size))
		return bad(r, "size=N, decimal, was expected");
	if (!pcs || read_pcs(pcs, pcs + strlen(pcs), ',', s.pcs, &s.depth, &why))
		return s.depth == 32 ? refuse(r) : bad(r, pcs ? why : "pcs= with hex addresses or - was expected");
	if (!machine || strcmp(machine, m->name) || (search && strcmp(search, m->best ? "best" : "lws")))
		return skip(r);
	for (n = 0; n < s.depth; n++)
		if (s.pcs[n] > UINTPTR_MAX)
			return skip(r);
	if (s.size > UINTPTR_MAX)
		return skip(r);

	len = lib_encode(blob, &s);
	printf("blob %s ", r->word[1]);
	hex_print(stdout, blob, len);
	printf("\n");
	return 0;
}

static int
serve_line(struct request *r, const struct machine *m)
{
	const char *op = r->word[0];

	if (!strcmp(op, "hello")) {
		if (r->words < 2 || strcmp(r->word[1], "btp=1"))
			return bad(r, "hello btp=1 was expected");
		printf("hello btp=1 name=lws-c version=%s ops=decode,encode,end,mline machines=%s searches=%s\n",
		       lws_get_library_version(), m->name, m->best ? "best" : "lws");
		return 0;
	}
	if (r->words < 2)
		return bad(r, "an operation and an id were expected");
	if (!strcmp(op, "decode") || !strcmp(op, "end"))
		return op_decode(r);
	if (!strcmp(op, "mline"))
		return op_mline(r);
	if (!strcmp(op, "encode"))
		return op_encode(r, m);
	return skip(r);
}

int
mode_serve(int argc, char **argv)
{
	struct request r = { { NULL }, 0, 0 };
	struct machine m;
	char *buf = NULL;
	size_t cap = 0;
	ssize_t got;
	int rc = 0;

	if (argc) {
		fprintf(stderr, "btref serve: no arguments were expected, not %s\n", argv[0]);
		return EXIT_USAGE;
	}
	machine_probe(&m);
	while (!rc && (got = getline(&buf, &cap, stdin)) >= 0) {
		char *save = NULL, *w;

		r.line++;
		r.words = 0;
		if (strlen(buf) != (size_t)got) {
			rc = bad(&r, "a line without NUL was expected");
			break;
		}
		for (w = strtok_r(buf, " \t\r\n", &save); w; w = strtok_r(NULL, " \t\r\n", &save))
			if (r.words < (int)(sizeof(r.word) / sizeof(r.word[0])))
				r.word[r.words++] = w;
		if (!r.words)
			continue;
		if (!strcmp(r.word[0], "quit"))
			break;
		rc = serve_line(&r, &m);
		fflush(stdout);
	}
	free(buf);

	return rc;
}
