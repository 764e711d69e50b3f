/*
 * Writes the lines of a recording that standard input asks for, a line each: a word
 * that says which, and its values; "-" is one that is unknown. Texts are in hex.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lwsbt.h"

static void put(void *arg, const char *text, size_t len) { fwrite(text, 1, len, arg); }

static const char *word(void)
{
	return strtok(NULL, " \n");
}

static uint64_t number(void)
{
	const char *w = word();

	return *w == '-' ? LWSBT_NONE : strtoull(w, NULL, 10);
}

static const char *text(void)
{
	static char s[200];
	const char *w = word();
	size_t n = 0;
	unsigned c;

	if (*w == '-')
		return NULL;
	for (; sscanf(w, "%2x", &c) == 1; w += 2)
		s[n++] = (char)c;
	s[n] = 0;
	return s;
}

int main(void)
{
	static char request[2000];
	const struct lwsbt_out out = { put, stdout };

	while (fgets(request, sizeof request, stdin)) {
		const char *what = strtok(request, " \n");
		struct lwsbt_head h;
		struct lwsbt_event e;
		struct lwsbt_stack s;
		uint8_t blob[LWSBT_EVENT_MAX];
		size_t len;

		if (!strcmp(what, "boot")) {
			const char *prog = text();
			uint64_t pid = number();

			lwsbt_head_boot(&out, prog, pid, number());
		} else if (!strcmp(what, "map")) {
			lwsbt_head_map(&out, number());
		} else if (!strcmp(what, "lost")) {
			lwsbt_head_lost(&out, number());
		} else if (!strcmp(what, "begin") || !strcmp(what, "end")) {
			h.number = (uint32_t)number();
			h.time = number();
			h.records = number();
			h.bytes = number();
			h.user = number() == 1;
			h.why = text();
			(*what == 'b' ? lwsbt_head_begin : lwsbt_head_end)(&out, &h);
		} else { /* event */
			e.kind = (enum lwsbt_event_kind)number();
			e.address = number();
			e.old = number();
			e.time = number();
			e.thread = number();
			e.sequence = number();
			memset(&s, 0, sizeof s);
			s.size = (lwsbt_word)number();
			for (uint64_t left = number(); left > 0; left--)
				s.pc[s.depth++] = (lwsbt_word)number();
			len = lwsbt_encode_event(blob, sizeof blob, &s, &e, LWSBT_SEARCH_BEST);
			if (len == 0 || len > sizeof blob)
				return 1;
			lwsbt_line_event(&out, blob, len);
		}
	}
	return 0;
}
