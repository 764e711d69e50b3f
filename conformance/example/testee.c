/*
 * The protocol: reads requests, and answers them (BTP/1, ../README.md).
 * testee.h lists the other files.
 *
 *   cc -o testee testee*.c -lm && btconform -- ./testee
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testee.h"

/* -- Faults, memory, and the answer */

struct fault fault;

void reject(const char *reason, long bit)
{
	if (fault.reason)
		return;
	fault.reason = reason;
	fault.bit = bit;
}

struct fault take_fault(void)
{
	struct fault f = fault;

	fault.reason = NULL;
	return f;
}

static void *checked(void *memory)
{
	if (!memory) {
		fputs("testee: out of memory\n", stderr);
		exit(1);
	}
	return memory;
}

union chunk {			/* stands before memory of need() */
	union chunk *next;
	uint64_t number;	/* what follows is aligned for all types that are used here */
	double real;
};

static union chunk *chunks;

void *need(size_t size)
{
	union chunk *c = checked(calloc(1, sizeof *c + size));

	c->next = chunks;
	chunks = c;
	return c + 1;
}

static void free_all(void)
{
	while (chunks) {
		union chunk *next = chunks->next;

		free(chunks);
		chunks = next;
	}
}

/* Arrays have space for 8, 16, 32, and so on. */
void *grow(void *array, size_t n, size_t each)
{
	void *larger;

	if (array && (n < 8 || (n & (n - 1))))
		return array;
	larger = need((n < 8 ? 8 : 2 * n) * each);
	if (n)
		memcpy(larger, array, n * each);
	return larger;
}

static char *answer;
static size_t answer_len, answer_size;

void put(const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (answer_len + (size_t)n >= answer_size) {
		answer_size = 2 * answer_size + (size_t)n + 1;
		answer = checked(realloc(answer, answer_size));
	}
	va_start(args, format);
	vsnprintf(answer + answer_len, answer_size - answer_len, format, args);
	va_end(args);
	answer_len += (size_t)n;
}

struct bytes take_back(void)
{
	struct bytes text = { memcpy(need(answer_len + 1), answer, answer_len), answer_len };

	answer_len = 0;
	return text;
}

/* -- Words of a request */

const char *option(char **words, const char *key)
{
	size_t n = strlen(key);

	for (; *words; words++)
		if (!strncmp(*words, key, n) && (*words)[n] == '=')
			return *words + n + 1;
	return NULL;
}

const char *must(char **words, const char *key)
{
	const char *value = option(words, key);

	if (!value)
		reject(MALFORMED, -1);
	return value ? value : "";
}

/* -- The loop */

static void hello(void)
{
	printf("hello btp=1 name=example version=1 ops=");
	for (const struct operation *o = operations; o->name; o++)
		printf("%s%s", o == operations ? "" : ",", o->name);
	puts(" machines=exact32,exact64,wrap32,wrap64,zero32,zero64 searches=lws,best");
}

static void run(const struct operation *o, struct request *r, const char *id)
{
	const char *word = option(r->words, "word");

	r->op = o->name;
	r->word = word && !strcmp(word, "32") ? 32 : 64;
	r->data = from_hex(r->words[0] ? r->words[0] : "-");
	answer_len = 0;
	take_fault();
	o->run(r);
	if (fault.reason && !strcmp(fault.reason, MALFORMED))
		printf("skip %s malformed\n", id);
	else if (fault.reason && fault.bit >= 0)
		printf("reject %s %s bit=%ld\n", id, fault.reason, fault.bit);
	else if (fault.reason)
		printf("reject %s %s\n", id, fault.reason);
	else if (!strcmp(o->verb, "text")) {
		printf("text %s ", id);
		for (size_t i = 0; i < answer_len; i++)
			printf("%02x", (unsigned char)answer[i]);
		puts(answer_len ? "" : "-");
	} else {
		printf("%s %s ", o->verb, id);
		fwrite(answer, 1, answer_len, stdout);
		puts("");
	}
}

/* Splits a request into words, and answers it. */
static void serve(char *line)
{
	char **words = NULL;
	size_t n = 0;
	struct request r = { NULL, { NULL, 0 }, 64, NULL };

	for (char *at = line; at; ) {
		words = grow(words, n, sizeof *words);
		words[n++] = at;
		at = strchr(at, ' ');
		if (at)
			*at++ = 0;
	}
	words = grow(words, n, sizeof *words);
	words[n] = NULL;
	if (!strcmp(words[0], "hello")) {
		hello();
		return;
	}
	if (n < 2)
		return;
	r.words = words + 2;
	for (const struct operation *o = operations; o->name; o++)
		if (!strcmp(words[0], o->name) && n - 2 >= o->words) {
			run(o, &r, words[1]);
			return;
		}
	printf("skip %s unsupported\n", words[1]);
}

int main(void)
{
	size_t len = 0, size = 1 << 16;
	char *line = checked(malloc(size));

	while (fgets(line + len, (int)(size - len), stdin)) {
		len += strlen(line + len);
		if (len == size - 1 && line[len - 1] != '\n') {	/* there is more of it */
			size *= 2;
			line = checked(realloc(line, size));
			continue;
		}
		line[strcspn(line, "\n")] = 0;
		len = 0;
		if (!strcmp(line, "quit"))
			break;
		serve(line);
		free_all();
		fflush(stdout);		/* the runner waits for it */
	}
	free(line);
	free(answer);
	return 0;
}
