/* Mode errata: reproduces each fault of the library in a child process. */
#include "errata.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const char *errata_tool_path;

/* ---- words ---- */

static char why_not[256];

/* Prints label and text, wrapped at 96 columns. */
static void
tell(const char *label, const char *fmt, va_list ap)
{
	char text[4096], *w, *save = NULL;
	size_t col = 0;

	vsnprintf(text, sizeof(text), fmt, ap);
	printf("%s", label);
	for (w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		if (col + strlen(w) > 84) {
			printf("\n         ");
			col = 0;
		}
		printf(" %s", w);
		col += strlen(w) + 1;
	}
	printf("\n");
}

#define TELL(label) do { va_list ap; va_start(ap, fmt); tell(label, fmt, ap); va_end(ap); } while (0)

void did(const char *fmt, ...) { TELL("done:    "); }
void expected(const char *fmt, ...) { TELL("expected:"); }
void saw(const char *fmt, ...) { TELL("seen:    "); }

int
not_here(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why_not, sizeof(why_not), fmt, ap);
	va_end(ap);
	return 0;
}

const char *
parsed_text(const struct parsed *p, char *buf, size_t cap)
{
	FILE *f = fmemopen(buf, cap, "w");

	if (!f) {
		perror("btref errata");
		exit(EXIT_SELF);
	}
	if (p->rc)
		fprintf(f, "failure (%d)", p->rc);
	else
		parsed_print(f, p);
	fclose(f);
	return buf;
}

const char *
outcome_text(const struct outcome *o, char *buf, size_t cap)
{
	char name[16];

	if (o->how == CHILD_HANG)
		snprintf(buf, cap, "it never returned");
	else if (o->how == CHILD_SIGNAL)
		snprintf(buf, cap, "it died of %s", signal_name(o->code, name));
	else
		snprintf(buf, cap, "it ended with exit code %d", o->code);
	return buf;
}

/* ---- blobs assembled from fields ---- */

void
make_bits(struct maker *m, uint64_t v, int width)
{
	static const uint8_t bit_in_byte[8] = { 128, 64, 32, 16, 8, 4, 2, 1 };
	int n;

	for (n = width - 1; n >= 0; n--) {
		if (v >> n & 1)
			m->bytes[m->bits / 8] |= bit_in_byte[m->bits % 8];
		m->bits++;
	}
}

void
make_field(struct maker *m, uint64_t v, int width)
{
	make_bits(m, v, width);
	make_bits(m, 0, 1);
}

void
make_literal(struct maker *m, uint64_t v, int width)
{
	make_field(m, 0, 1);
	make_field(m, (uint64_t)width, 6);
	make_field(m, v, width);
}

size_t
make_end(struct maker *m)
{
	size_t len = (m->bits + 7) / 8 + 2;

	m->bytes[len - 2] = (uint8_t)(len / 256);
	m->bytes[len - 1] = (uint8_t)(len % 256);
	return len;
}

/* ---- children ---- */

struct job {
	const uint8_t *blob;
	size_t len;
};

static int
parse_fn(void *arg, int fd)
{
	struct job *job = arg;
	struct parsed p;

	lib_parse(&p, job->blob, job->len);
	write_all(fd, &p, sizeof(p));
	return 0;
}

bool
parse_in_child(struct parsed *p, struct outcome *o, const uint8_t *blob, size_t len)
{
	struct job job = { blob, len };

	child_run(o, parse_fn, &job, 10);
	if (o->how != CHILD_DONE || o->len != sizeof(*p))
		return false;
	memcpy(p, o->data, sizeof(*p));
	return true;
}

/* ---- the mode ---- */

static int
show_fn(void *arg, int fd)
{
	const struct erratum *e = arg;
	int seen = e->show();

	write_all(fd, why_not, sizeof(why_not));
	return seen ? EXIT_OK : EXIT_SHORT;
}

static int
show(const struct erratum *e)
{
	static struct outcome o;
	char words[64];

	printf("erratum %d: %s\n", e->number, e->title);
	why_not[0] = '\0';
	child_run(&o, show_fn, (void *)(uintptr_t)e, 60);
	if (o.how == CHILD_DONE && o.code == EXIT_OK) {
		printf("erratum %d: reproduced\n", e->number);
		return EXIT_OK;
	}
	if (o.how == CHILD_DONE && o.code == EXIT_SHORT) {
		memcpy(why_not, o.data, sizeof(why_not));
		printf("erratum %d: not reproduced here (%s)\n", e->number,
		       why_not[0] ? why_not : "the library behaved as expected");
		return EXIT_SHORT;
	}
	fprintf(stderr, "btref errata: the demonstration of %d itself failed: %s\n", e->number,
		outcome_text(&o, words, sizeof(words)));
	return EXIT_SELF;
}

static const struct erratum *
find(int number)
{
	static const struct erratum *const tables[] = {
		errata_write, errata_read, errata_memory, errata_capture, errata_tool,
	};
	size_t t;
	const struct erratum *e;

	for (t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
		for (e = tables[t]; e->number; e++)
			if (e->number == number)
				return e;
	return NULL;
}

int
mode_errata(int argc, char **argv)
{
	const struct erratum *e;
	const char *which = NULL;
	int n, rc, worst = EXIT_OK, seen = 0;

	for (n = 0; n < argc; n++)
		if (!strcmp(argv[n], "--tool") && n + 1 < argc)
			errata_tool_path = argv[++n];
		else if (!which && argv[n][0] != '-')
			which = argv[n];
		else {
			fprintf(stderr, "btref errata: --tool PATH and one number, or list, were "
				"expected, not %s\n", argv[n]);
			return EXIT_USAGE;
		}

	if (which && strcmp(which, "list")) {
		uint64_t v;

		e = read_number(which, which + strlen(which), 10, &v) || v > 999 ?
								NULL : find((int)v);
		if (!e) {
			fprintf(stderr, "btref errata: there is no erratum %s; "
				"btref errata list names them\n", which);
			return EXIT_USAGE;
		}
		return show(e);
	}
	for (n = 1; (e = find(n)); n++) {
		if (which) {
			printf("%d\t%s\n", e->number, e->title);
			continue;
		}
		rc = show(e);
		seen += rc == EXIT_OK;
		if (rc > worst)
			worst = rc;
		printf("\n");
	}
	if (!which)
		printf("%d of %d errata reproduced on %s\n", seen, n - 1, BTREF_PLATFORM);
	return worst;
}
