/* Mode vectors: records what the library writes for stacks on standard input. */
#include "btref.h"

#include <string.h>

void
btv_head(const char *source, const struct machine *m)
{
	printf("btv 1\n");
	if (source)
		printf("source: %s\n", source);
	printf("library: libwebsockets %s\n"
	       "compiler: %s\n"
	       "options: %s\n"
	       "platform: %s\n"
	       "machine: %s\n",
	       lws_get_library_version(), BTREF_COMPILER, BTREF_OPTIONS, BTREF_PLATFORM, m->name);
	if (m->spill_any)
		printf("spill: any\n");
}

/* Prints the clauses that this blob exercises. */
static void
print_clauses(const struct naive *n, const struct machine *m)
{
	static const char *const mach[] = { "BT-MACH-4", "BT-MACH-2", "BT-MACH-3" };
	bool literal = false, delta = false, wide = false, count64 = false;
	int f;

	for (f = 0; f < n->fields; f++) {
		const struct naive_field *p = &n->field[f];

		literal |= p->kind == NAIVE_LITERAL;
		delta |= p->kind == NAIVE_DELTA;
		wide |= p->width >= 32;
		count64 |= (p->kind == NAIVE_COUNT || p->kind == NAIVE_SIZE_COUNT) && !p->value;
	}
	printf("clause: BT-BLOB-1 BT-FIELD-1 BT-DEPTH-1");
	if (n->field[0].value == 0)
		printf(" BT-DEPTH-2");
	if (literal || delta)
		printf(" BT-ITEM-1");
	if (literal)
		printf(" BT-LIT-1");
	if (delta)
		printf(" BT-DELTA-1 BT-DELTA-2 BT-DELTA-3");
	printf(" BT-COUNT-1");
	if (count64)
		printf(" BT-COUNT-2");
	printf(" BT-SIZE-1");
	if (wide)
		printf(" %s", mach[m->shift]);
	printf(" BT-SRCH-1 BT-TEXT-1\n");
}

struct parse_job {
	const uint8_t *blob;
	size_t len;
};

static int
parse_job(void *arg, int fd)
{
	struct parse_job *job = arg;
	struct parsed p;

	lib_parse(&p, job->blob, job->len);
	write_all(fd, &p, sizeof(p));
	return 0;
}

static bool
same(const struct parsed *p, const struct naive *n)
{
	if (p->rc || p->depth != n->depth || p->size != n->size)
		return false;
	return !memcmp(p->pcs, n->pcs, (size_t)n->depth * sizeof(p->pcs[0]));
}

/* Prints the library's reading if it differs from that of the naive reader. */
static void
print_lib_want(const struct btv_record *r, const struct naive *n)
{
	struct parse_job job = { r->blob, r->len };
	static struct outcome o;
	struct parsed p;
	char name[16];

	child_run(&o, parse_job, &job, 10);
	if (o.how == CHILD_DONE && o.len == sizeof(p)) {
		memcpy(&p, o.data, sizeof(p));
		if (same(&p, n))
			return;
	}
	printf("want[lws-%s]: ", BTREF_PLATFORM);
	if (o.how == CHILD_HANG)
		printf("hang\n");
	else if (o.how == CHILD_SIGNAL)
		printf("crash %s\n", signal_name(o.code, name));
	else if (o.len != sizeof(p))
		printf("crash EXIT-%d\n", o.code);
	else {
		parsed_print(stdout, &p);
		printf("\n");
	}
}

int
btv_record(const struct btv_record *r, const struct machine *m)
{
	static struct naive n;
	char line[MAX_LINE];
	int f;

	if (naive_read(&n, r->blob, r->len, WORD)) {
		fprintf(stderr, "btref: %s: the naive reader rejects what the library wrote: "
			"%s at bit %u\n", r->id, n.reason, (unsigned int)n.bit);
		return EXIT_SELF;
	}
	for (f = 0; f < n.fields && !m->spill_any; f++)
		if (n.field[f].spill != machine_spill(m, n.field[f].value)) {
			fprintf(stderr, "btref: %s: field %d of frame %d has a spill bit that "
				"is not a %s machine's; say --spill any\n",
				r->id, f, n.field[f].frame, m->name);
			return EXIT_SELF;
		}
	if (n.depth != r->in->depth) {
		fprintf(stderr, "btref: %s: %d frames were encoded, %d are read\n", r->id,
			r->in->depth, n.depth);
		return EXIT_SELF;
	}
	if (lib_line(line, r->blob, r->len)) {
		fprintf(stderr, "btref: %s: the library's base64 failed\n", r->id);
		return EXIT_SELF;
	}

	printf("\nid: %s\n", r->id);
	print_clauses(&n, m);
	printf("op: decode encode\nin: size=%llu pcs=", (unsigned long long)r->in->size);
	pcs_print(stdout, r->in->pcs, r->in->depth);
	printf("\nhex: ");
	hex_print(stdout, r->blob, r->len);
	printf("\nline: %s\nwant: ok size=%llu pcs=", line, (unsigned long long)n.size);
	pcs_print(stdout, n.pcs, n.depth);
	printf("\n");
	print_lib_want(r, &n);

	return 0;
}

int
mode_vectors(int argc, char **argv)
{
	struct stacks in = { stdin, 0, NULL, 0 };
	const char *source = NULL;
	bool spill_any = false;
	struct machine m;
	struct stack s;
	int n, got = 0, rc = 0;

	for (n = 0; n < argc; n++)
		if (!strcmp(argv[n], "--source") && n + 1 < argc)
			source = argv[++n];
		else if (!strcmp(argv[n], "--spill") && n + 1 < argc && !strcmp(argv[n + 1], "any")) {
			spill_any = true;
			n++;
		} else {
			fprintf(stderr, "btref vectors: --source TEXT or --spill any was "
				"expected, not %s\n", argv[n]);
			return EXIT_USAGE;
		}

	machine_probe(&m);
	m.spill_any |= spill_any;

	while (!rc && (got = stacks_next(&in, &s)) > 0) {
		uint8_t blob[MAX_BLOB];
		struct btv_record r = { s.id, &s, blob, 0 };

		if (in.line == 1)
			btv_head(source, &m);
		r.len = lib_encode(blob, &s);
		rc = btv_record(&r, &m);
	}
	stacks_free(&in);
	if (rc)
		return rc;
	if (got < 0)
		return EXIT_USAGE;
	if (!in.line) {
		fprintf(stderr, "btref vectors: no stacks on standard input; lines of "
			"ID<TAB>size<TAB>addresses were expected\n");
		return EXIT_USAGE;
	}
	return EXIT_OK;
}
