/* Headers and recordings: sections 16 and 17 of SPEC.md. */
#include <inttypes.h>
#include <string.h>

#include "testee.h"

static int is_name(struct bytes word)
{
	for (size_t i = 0; i < word.len; i++)
		if (word.at[i] < 'a' || word.at[i] > 'z')
			return 0;
	return word.len > 0;
}

/* Reports whether a word is one of those in a list with spaces around each. */
static int is_one_of(struct bytes word, const char *list)
{
	for (const char *at = list; (at = strchr(at, ' ')) && at[1]; at++)
		if (is_name(word) && !strncmp(at + 1, (const char *)word.at, word.len) && at[1 + word.len] == ' ')
			return 1;
	return 0;
}

/* The next word, up to the character end. text then begins after this character. */
static struct bytes next_word(struct bytes *text, int end)
{
	const unsigned char *found = text->len ? memchr(text->at, end, text->len) : NULL;
	struct bytes word = part(*text, 0, found ? (size_t)(found - text->at) : text->len);

	*text = found ? part(*text, word.len + 1, text->len - word.len - 1) : part(*text, text->len, 0);
	return word;
}

/* A value without its escapes. (BT-HEAD-1) */
static struct bytes unescape(struct bytes word)
{
	unsigned char *out = need(word.len + 1);
	struct bytes value = { out, 0 };

	for (size_t i = 0; i < word.len; i++) {
		uint64_t v = word.at[i];

		if (v < '!' || v > '~' || lead_in(word, i))
			reject("header-line", -1);
		if (v == '%') {
			if (word.len - i < 3 || !to_number(part(word, i + 1, 2), 16, &v))
				reject("header-line", -1);
			i += 2;
		}
		out[value.len++] = (unsigned char)v;
	}
	return value;
}

/* Reports whether a value consists of ranges START+LENGTH, separated by commas. (BT-HEAD-6) */
static int are_ranges(struct bytes value)
{
	size_t commas = 1;

	for (size_t i = 0; i < value.len; i++)
		commas += value.at[i] == ',';
	while (commas--) {
		struct bytes length = next_word(&value, ','), start = next_word(&length, '+');
		uint64_t from, n;

		if (!to_number(start, 16, &from) || !to_number(length, 16, &n) || n == 0 || (from && n > 0 - from))
			return 0;
	}
	return 1;
}

/* Checks the value of a key; only the first key with each name is checked. (BT-HEAD-2, BT-HEAD-6) */
static int is_valid(const struct key *k)
{
	uint64_t v;

	if (is_one_of(k->name, " code heap "))
		return are_ranges(k->value);
	if (!is_one_of(k->name, " t n b u w pid epoch allocs frees bytes live peak l base sample cut shift size free largest min "))
		return 1;
	if (!to_number(k->value, 10, &v))
		return 0;
	if (is_one_of(k->name, " w "))
		return v == 32 || v == 64;
	if (is_one_of(k->name, " shift "))
		return v <= 4;
	if (is_one_of(k->name, " base "))
		return v >> 32 == 0;
	return v > 0 || !is_one_of(k->name, " sample ");
}

static int same(struct bytes a, struct bytes b)
{
	return a.len == b.len && (a.len == 0 || !memcmp(a.at, b.at, a.len));
}

static void read_key(struct bytes word, struct header *h)
{
	struct bytes name = part(word, 0, 0);
	struct key *k;
	size_t first = 0;

	if (!memchr(word.at, '=', word.len)) {
		reject("header-line", -1);
		return;
	}
	name = next_word(&word, '=');
	h->keys = grow(h->keys, h->count, sizeof *h->keys);
	k = &h->keys[h->count++];
	k->name = name;
	k->value = unescape(word);
	while (!same(h->keys[first].name, name))
		first++;
	if (!is_name(name) || (first == h->count - 1 && !is_valid(k)))
		reject("header-line", -1);
}

/* Reads a header. (BT-HEAD-1, BT-HEAD-2, BT-HEAD-3) */
void read_header(struct bytes text, struct header *h)
{
	int more;

	memset(h, 0, sizeof *h);
	if (!begins(text, "~h#")) {
		reject("lead-in", -1);
		return;
	}
	text = part(text, 3, text.len - 3);
	while (text.len && is_space(text.at[text.len - 1]))
		text.len--;
	more = memchr(text.at, ' ', text.len) != NULL;
	h->verb = next_word(&text, ' ');
	if (!is_name(h->verb))
		reject("header-line", -1);
	h->numbered = is_one_of(h->verb, " begin end ");
	if (!is_one_of(h->verb, " boot map load total lost heap ") && text.len && text.at[0] >= '0' && text.at[0] <= '9')
		h->numbered = 1;
	if (h->numbered) {
		more = memchr(text.at, ' ', text.len) != NULL;
		if (!to_number(next_word(&text, ' '), 10, &h->number) || h->number >> 32)
			reject("header-line", -1);
	}
	while (more && !fault.reason) {
		more = memchr(text.at, ' ', text.len) != NULL;
		read_key(next_word(&text, ' '), h);
	}
}

int is_verb(const struct header *h, const char *verb)
{
	return h->verb.len == strlen(verb) && begins(h->verb, verb);
}

const struct bytes *key_of(const struct header *h, const char *name)
{
	for (size_t i = 0; i < h->count; i++)
		if (h->keys[i].name.len == strlen(name) && begins(h->keys[i].name, name))
			return &h->keys[i].value;
	return NULL;
}

int key_number(const struct header *h, const char *name, uint64_t *v)
{
	const struct bytes *value = key_of(h, name);

	return value && to_number(*value, 10, v);
}

/* Writes verb, number and keys. If there is no number, writes no_number. */
void put_header(const struct header *h, const char *no_number)
{
	put("%.*s", (int)h->verb.len, (const char *)h->verb.at);
	if (h->numbered)
		put(" %" PRIu64, h->number);
	else
		put("%s", no_number);
	for (size_t i = 0; i < h->count; i++) {
		const struct key *k = &h->keys[i];

		put(" %.*s=", (int)k->name.len, (const char *)k->name.at);
		for (size_t c = 0; c < k->value.len; c++) {
			unsigned char v = k->value.at[c];

			put(v < '!' || v > '}' || v == '%' ? "%%%02X" : "%c", v);
		}
	}
}

/* -- Recordings */

struct recording {		/* what the headers above a line say */
	unsigned boot;
	int word, fields;	/* fields: ~m# records have user fields (BT-REC-2) */
	int open;		/* in the dump of this number */
	uint64_t dump;
};

/* Applies a header to the state of the recording. (BT-REC-1, BT-REC-2, BT-HEAD-4) */
static void take_header(struct bytes text, struct recording *r)
{
	struct header h;
	uint64_t v;

	read_header(text, &h);
	if (take_fault().reason)	/* it means nothing (BT-HEAD-5) */
		return;
	if (is_verb(&h, "boot")) {
		r->boot++;
		r->word = key_number(&h, "w", &v) ? (int)v : 64;
	} else if (!is_verb(&h, "begin") && !is_verb(&h, "end"))
		return;
	r->open = is_verb(&h, "begin");
	r->dump = h.number;
	r->fields = r->open && key_number(&h, "u", &v) && v == 1;
}

static void read_record(char kind, struct bytes text, const struct recording *r, struct stack *s)
{
	struct bits rest;

	if (kind == 'b') {
		read_decoded(text, s);
		return;
	}
	text = read_line(text, kind == 'e' ? "~e#" : "~m#", 0);
	if (fault.reason)
		return;
	if (kind == 'e' || r->fields)
		read_fields(text, r->word, kind == 'e', s);
	else
		decode(text, r->word, 0, s, &rest);
}

/* Lists the records of a recording with their values. */
void put_log(struct bytes text)
{
	struct recording r = { 0, 64, 0, 0, 0 };
	const char *before = "";

	for (struct place p = next_place(text, 0); p.kind; p = next_place(text, p.at + p.len)) {
		struct bytes record = part(text, p.at, p.len);
		struct stack s;

		if (p.kind == 'h')
			take_header(record, &r);
		if (strchr("hpv", p.kind))
			continue;
		put("%s%c@%zu+%zu;boot=%u;dump=", before, p.kind, p.at, p.len, r.boot);
		before = " ";
		if (r.open && p.kind != 'e')
			put("%" PRIu64 ";", r.dump);
		else
			put("-;");
		memset(&s, 0, sizeof s);
		read_record(p.kind, record, &r, &s);
		if (take_fault().reason)
			put("reject");
		else
			put_stack(&s, ';');
	}
	if (!*before)
		put("-");
}

/* The words of a stack, separated by a space or a semicolon. */
void put_stack(const struct stack *s, char between)
{
	const char *before = "user=";

	put("size=%" PRIu64 "%cpcs=%s", s->size, between, s->depth ? "" : "-");
	for (int n = 0; n < s->depth; n++)
		put("%s%" PRIx64, n ? "," : "", s->pcs[n]);
	for (int tag = 1; tag <= MOST_FIELDS; tag++)
		if (s->has[tag]) {
			if (*before == 'u')
				put("%c", between);
			put("%s%d:%" PRIx64, before, tag, s->user[tag]);
			before = ",";
		}
}
