/*
 * A program that prints the type of each block, "-" if it has none. It allocates as C programs do: directly,
 * through wrappers, in functions that are inlined, in factories; and what looks like structs but is
 * none: copies of strings, and buffers whose sizes are those of structs now and then.
 */
#include "../../../core/testdata/onheap.h"

struct list { struct list *next, *prev; };
struct conn { struct list link; int fd; unsigned flags; char *host, *rx; void *user; long stats[6]; };
struct session { struct session *next; char *name; struct conn *conn; long expires; };
struct node { struct node *left, *right, *parent; void *data; };
struct route { char *prefix; int port; struct route *next; char text[40]; };
struct timer { struct list link; void (*fn)(void *); void *arg; long when; };
struct job { int kind; long params[9]; struct job *next; };
typedef struct { char *key, *value; unsigned hash; } entry;
struct table { entry **entries; unsigned size, used; struct list lru; };
union payload { long number; char *text; double real[4]; };
struct message { struct list link; union payload u; int type; };
struct parser { char *at, *end; int state; struct message *out; char word[64]; };
struct twin { long a[8]; };
struct twin2 { long a[8]; };
struct flex { struct flex *next; unsigned length; char text[]; };
struct server { struct list conns, timers, messages; struct table *table; struct node *root; struct session *sessions; struct route *routes; struct job *jobs; struct flex *texts; void *keep[12000]; int kept; };

static struct server server;
static struct { uintptr_t masked; const char *type; } truth[40000];
static int truths;
static unsigned long long seed = 1;

static unsigned any(unsigned n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(seed >> 33) % n;
}

static void *is(void *p, const char *type)
{
	truth[truths].masked = (uintptr_t)p ^ MASK;
	truth[truths++].type = type;
	return p;
}

static void *keep(void *p)
{
	return server.keep[server.kept++ % 12000] = p;
}

/* wrappers */
static NOINLINE void *get(size_t n)
{
	void *p = heap_malloc(n);

	if (!p)
		abort();
	return memset(p, 0, n);
}
static inline void *zalloc(size_t n) { return get(n); }
static NOINLINE void *array(size_t n, size_t size) { return zalloc(n * size); }
#define NEW(type) is(get(sizeof(type)), #type)

static NOINLINE char *copy(const char *s)
{
	size_t n = strlen(s) + 1;
	char *p = is(get(n), "-");

	return memcpy(p, s, n);
}

static NOINLINE char *text(unsigned length)
{
	char b[512];

	memset(b, 'a' + (int)any(26), length);
	b[length] = 0;
	return copy(b);
}

static inline void add(struct list *to, struct list *l)
{
	l->next = to->next;
	l->prev = to;
	to->next->prev = l;
	to->next = l;
}

static NOINLINE struct conn *open_conn(int fd)
{
	struct conn *c = NEW(struct conn);

	c->fd = fd;
	c->host = text(3 + any(30));
	c->rx = keep(is(zalloc(200 + any(400)), "-"));
	add(&server.conns, &c->link);
	return c;
}

static NOINLINE void open_session(struct conn *conn)
{
	struct session *s = is(zalloc(sizeof *s), "struct session");

	s->name = text(1 + any(60)); /* 32 bytes now and then: the size of a session */
	s->conn = conn;
	s->next = server.sessions;
	server.sessions = s;
}

static inline struct node *new_node(void *data)
{
	struct node *n = NEW(struct node);

	n->data = data;
	return n;
}

static NOINLINE void insert(void *data)
{
	struct node **at = &server.root, *parent = NULL;

	while (*at) {
		parent = *at;
		at = any(2) ? &parent->left : &parent->right;
	}
	*at = new_node(data);
	(*at)->parent = parent;
}

static NOINLINE void add_route(int port)
{
	struct route *r;
	char prefix[32];

	snprintf(prefix, sizeof prefix, "/api/%d", port);
	r = NEW(struct route);
	r->prefix = copy(prefix);
	r->port = port;
	r->next = server.routes;
	server.routes = r;
}

static void fire(void *arg) { (void)arg; }

static NOINLINE void start_timer(long when)
{
	struct timer *t = NEW(struct timer);

	t->fn = fire;
	t->when = when;
	add(&server.timers, &t->link);
}

/* a factory with a variable for each kind */
static NOINLINE void *make(int kind)
{
	switch (kind) {
	case 0: {
		struct job *j = NEW(struct job);
		j->kind = 7;
		return j;
	}
	case 1: {
		struct parser *p = NEW(struct parser);
		p->at = p->end = p->word;
		return p;
	}
	default: {
		struct message *m = NEW(struct message);
		m->type = kind;
		return m;
	}
	}
}

/* and one without */
static NOINLINE void *by_size(int kind)
{
	static const struct { size_t size; const char *type; } kinds[] = { { sizeof(struct job), "struct job" }, { sizeof(struct parser), "struct parser" } };

	return is(get(kinds[kind].size), kinds[kind].type);
}

static NOINLINE void queue(int n)
{
	struct job *j = by_size(0);

	j->kind = n;
	j->next = server.jobs;
	server.jobs = j;
}

static NOINLINE void put_entry(char *key)
{
	entry *e = is(zalloc(sizeof *e), "entry");

	e->key = key;
	e->value = text(any(40));
	e->hash = any(1 << 30);
	keep(e);
}

static NOINLINE void twins(void)
{
	struct twin *a = NEW(struct twin);
	struct twin2 *b = NEW(struct twin2);

	a->a[0] = b->a[0] = 1;
	keep(a);
	keep(b);
}

static NOINLINE void add_text(void)
{
	unsigned n = any(50);
	struct flex *f = is(get(sizeof *f + n), n ? "-" : "struct flex");

	f->length = n;
	f->next = server.texts;
	server.texts = f;
}

/* a buffer that has the size of the function's struct now and then */
static NOINLINE void receive(struct conn *c, unsigned n)
{
	struct parser *p = is(zalloc(sizeof *p), "struct parser");
	char *b = is(get(n), "-");

	memset(b, 'x', n);
	p->at = b;
	p->end = b + n;
	c->user = keep(p);
}

static NOINLINE void conns_array(unsigned n)
{
	struct conn *list = is(array(n, sizeof *list), n == 1 ? "struct conn" : "-");

	keep(list);
}

int main(int argc, char **argv)
{
	int rounds = 120;

	server.conns.next = server.conns.prev = &server.conns;
	server.timers.next = server.timers.prev = &server.timers;
	server.table = NEW(struct table);
	for (int i = 0; i < rounds; i++) {
		struct conn *c = open_conn(i);
		for (int k = 0; k < 5; k++)
			open_session(c);
		for (int k = 0; k < 8; k++)
			insert(text(any(80)));
		add_route(8000 + i);
		start_timer(i);
		start_timer(i + 1);
		for (int k = 0; k < 4; k++)
			keep(make(k));
		queue(i);
		put_entry(text(10));
		if (i % 10 == 0)
			twins();
		add_text();
		receive(c, 16 + any(400));
		conns_array(1 + any(4));
	}
	for (int i = 0; i < truths; i++)
		printf("type %llx %s\n", (unsigned long long)(truth[i].masked ^ MASK), truth[i].type);
	fflush(stdout);
	stop(argc > 1);
	return argv == NULL;
}
