/* The operations of BTP/1: each puts the words of its answer, or rejects. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "testee.h"

/* The bytes of a word in hexadecimal; "-" is none. */
struct bytes from_hex(const char *hex)
{
	unsigned char *out = need(strlen(hex) / 2 + 1);
	struct bytes data = { out, 0 };

	while (*hex != '-' && hex[0] && hex[1]) {
		char pair[3] = { hex[0], hex[1], 0 };

		out[data.len++] = (unsigned char)strtoul(pair, NULL, 16);
		hex += 2;
	}
	return data;
}

static void put_hex(const unsigned char *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		put("%02x", data[i]);
	if (len == 0)
		put("-");
}

/* The words size=, pcs= and user=. */
static struct stack parse_stack(char **words)
{
	struct stack s;
	const char *pcs = must(words, "pcs"), *user = option(words, "user");
	char *at = NULL;

	memset(&s, 0, sizeof s);
	s.size = strtoull(must(words, "size"), NULL, 10);
	for (; *pcs != '-' && pcs != at; s.depth++) {
		uint64_t pc = strtoull(pcs, &at, 16);

		if (s.depth < MOST_FRAMES)
			s.pcs[s.depth] = pc;
		pcs = *at == ',' ? at + 1 : at;
	}
	while (user && *user) {
		unsigned long tag = strtoul(user, &at, 10);
		uint64_t v = strtoull(at + 1, &at, 16);

		if (tag <= MOST_FIELDS) {
			s.user[tag] = v;
			s.has[tag] = 1;
		}
		user = *at == ',' ? at + 1 : NULL;
	}
	return s;
}

/* -- Operations */

static void op_decode(struct request *r)
{
	struct stack s;
	struct bits rest;
	struct bytes blob = r->data;

	memset(&s, 0, sizeof s);
	if (!strcmp(r->op, "end"))
		blob = at_end(blob);
	else if (!strcmp(r->op, "mline"))
		blob = read_line(blob, "~m#", !strcmp(must(r->words, "reading"), "lenient"));
	else if (!strcmp(r->op, "eline"))
		blob = read_line(blob, "~e#", 0);
	if (fault.reason)
		return;
	if (!strcmp(r->op, "user") || !strcmp(r->op, "eline"))
		read_fields(blob, r->word, r->op[0] == 'e', &s);
	else
		decode(blob, r->word, 0, &s, &rest);
	if (fault.reason)
		return;
	if (!strcmp(r->op, "marks"))
		put_marks(&s);
	else
		put_stack(&s, ' ');
}

static void op_bline(struct request *r)
{
	struct stack s;

	memset(&s, 0, sizeof s);
	read_decoded(r->data, &s);
	put_stack(&s, ' ');
}

static void put_pcs(const struct stack *s)
{
	put(" pcs=%s", s->depth ? "" : "-");
	for (int n = 0; n < s->depth; n++)
		put("%s%" PRIx64, n ? "," : "", s->pcs[n]);
}

static void op_salvage(struct request *r)
{
	struct stack s;
	int has_size, depth = salvage(r->data, r->word, &s, &has_size);

	if (fault.reason)
		return;
	put(has_size ? "depth=%d size=%" PRIu64 : "depth=%d size=-", depth, s.size);
	put_pcs(&s);
}

static void op_bare(struct request *r)
{
	struct stack s;
	long bits = decode_bare(r->data, r->word, &s);

	if (fault.reason)
		return;
	put("bits=%ld", bits);
	put_pcs(&s);
}

static void op_encode(struct request *r)
{
	const char *machine = must(r->words, "machine"), *search = must(r->words, "search");
	struct stack s = parse_stack(r->words);
	struct blob b;

	if (!strcmp(r->op, "event-encode"))
		encode_event(&s, machine, search, &b);
	else if (!strcmp(r->op, "bare-encode"))
		encode_bare(&s, machine, search, &b);
	else
		encode(&s, machine, search, &b);
	if (fault.reason)
		return;
	if (!strcmp(r->op, "bare-encode"))
		put("%d ", b.pos);
	put_hex(b.at, ((size_t)b.pos + 7) / 8);
}

/* The ~h# line of the words head VERB NUMBER KEY=VALUE …: what a reader rejects is refused. (BT-HEAD-1) */
static void format_header(char **words)
{
	struct header h;

	if (!words[0]) {
		reject(MALFORMED, -1);
		return;
	}
	put("~h#%s", words[0]);
	for (words++; *words; words++)
		if (strcmp(*words, "-"))
			put(" %s", *words);
	read_header(take_back(), &h);
	put("~h#");
	put_header(&h, "");
}

static void op_format(struct request *r)
{
	const char *blob = option(r->words, "blob"), *event = option(r->words, "event");

	if (!strcmp(r->words[0], "head"))
		format_header(r->words + 1);
	else if (blob || event) {
		put(blob ? "~m#" : "~e#");
		put_base64(from_hex(blob ? blob : event));
	} else {
		struct stack s = parse_stack(r->words);

		if (s.depth > MOST_FRAMES) {	/* BT-REJ-2 */
			reject("frames", -1);
			return;
		}
		put("~b#size: %" PRIu64 ",", s.size);
		for (int n = 0; n < s.depth; n++)
			put(" 0x%" PRIx64, s.pcs[n]);
	}
}

static void op_scan(struct request *r)
{
	const char *before = "";

	for (struct place p = next_place(r->data, 0); p.kind; p = next_place(r->data, p.at + p.len)) {
		put("%s%c@%zu+%zu", before, p.kind, p.at, p.len);
		before = " ";
	}
	if (!*before)
		put("-");
}

static void op_hline(struct request *r)
{
	struct header h;

	read_header(r->data, &h);
	put_header(&h, " -");
}

static void op_pline(struct request *r)
{
	struct paths line;

	read_paths(r->data, &line);
	if (!fault.reason)
		put_paths(&line);
}

static void op_name(struct request *r)
{
	put("%08" PRIx32, parse_path(r->words[0])->name);
}

static void op_log(struct request *r) { put_log(r->data); }
static void op_vline(struct request *r) { put_events(r->data); }
static void op_dumps(struct request *r) { put_dumps(r->data); }
static void op_pencode(struct request *r) { write_paths(r->words); }
static void op_vencode(struct request *r) { write_events(r->words); }
static void op_offsets(struct request *r) { put_offsets(r->words); }
static void op_addresses(struct request *r) { put_addresses(r->words); }

const struct operation operations[] = {
	{ "decode", "ok", 1, op_decode }, { "end", "ok", 1, op_decode }, { "mline", "ok", 1, op_decode },
	{ "marks", "marks", 1, op_decode }, { "user", "ok", 1, op_decode }, { "eline", "ok", 1, op_decode },
	{ "bline", "ok", 1, op_bline }, { "salvage", "part", 1, op_salvage }, { "bare", "bare", 1, op_bare },
	{ "encode", "blob", 1, op_encode }, { "user-encode", "blob", 1, op_encode },
	{ "event-encode", "blob", 1, op_encode }, { "bare-encode", "bits", 1, op_encode },
	{ "format", "text", 1, op_format }, { "scan", "found", 1, op_scan }, { "log", "records", 1, op_log },
	{ "hline", "head", 1, op_hline }, { "pline", "paths", 1, op_pline }, { "vline", "events", 1, op_vline },
	{ "dumps", "dumps", 1, op_dumps }, { "pencode", "text", 1, op_pencode }, { "vencode", "text", 1, op_vencode },
	{ "name", "name", 1, op_name }, { "offsets", "offsets", 3, op_offsets }, { "addresses", "addresses", 3, op_addresses },
	{ NULL, NULL, 0, NULL },
};
