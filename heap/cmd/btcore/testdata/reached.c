/*
 * A program that prints the type of each block, "-" if it has none or is larger than its type. Its structs are
 * reached by pointers of variables and structs, also by pointers to what they begin with, to arrays, and to memory that was freed.
 */
#define PLAIN
#include "../../../core/testdata/onheap.h"

struct base { int kind; struct base *next; char *name; };
struct circle { struct base base; long radius; };
struct square { struct base base; long side; long corner[4]; };
struct point { long x, y; };
struct leaf { struct leaf *next; long value[3]; };
union any_of { struct leaf *leaf; char *text; struct point *point; };
struct tree { struct tree *left, *right; union any_of content; int kind; struct leaf *leaves; void *user; };
typedef struct { struct tree *tree; struct { long id; struct leaf *spare; } inner; } holder;
struct pool { struct pool *next; struct tree *trees[6]; struct point *points; unsigned count; };
struct user { struct user *next; struct leaf *old; const char *name; long visits[5]; };
struct buffer { struct buffer *next; unsigned length; char data[]; };
struct packet { struct packet *next; char head[40]; char *body; };
struct head { struct head *next; int kind; }; /* the others begin alike */
struct word { struct head *next; int kind; long value; };
struct words { struct head *next; int kind; long value[4]; };
struct other { long words[5]; };

static struct base *shapes;
static struct tree *root;
static holder *holders[300];
static struct { int used; struct pool *first; struct user *users; } all;
static struct buffer *buffers;
static struct head *heads;
static void *keep[40000];
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
	for (int i = 0; i < truths; i++)
		if (truth[i].masked == ((uintptr_t)p ^ MASK)) {
			truth[i].type = type;
			return p;
		}
	truth[truths].masked = (uintptr_t)p ^ MASK;
	truth[truths++].type = type;
	return p;
}

#define NEW(type) is(calloc(1, sizeof(type)), #type)

static char *text(unsigned n)
{
	char *p = is(malloc(n + 1), "-");

	memset(p, 'a', n);
	p[n] = 0;
	return p;
}

static struct leaf *leaves(unsigned n)
{
	struct leaf *first = NULL;

	while (n--) {
		struct leaf *l = NEW(struct leaf);
		l->next = first;
		first = l;
	}
	return first;
}

static struct tree *tree(unsigned depth)
{
	struct tree *t = NEW(struct tree);

	if (depth) {
		t->left = tree(depth - 1);
		t->right = any(3) ? tree(depth - 1) : NULL;
	}
	t->kind = (int)any(3);
	if (t->kind == 0)
		t->content.text = text(any(60));
	else if (t->kind == 1)
		t->content.leaf = is(calloc(1, sizeof(struct leaf)), "struct leaf");
	t->leaves = leaves(any(4));
	t->user = is(calloc(1, sizeof(struct other)), "struct other");
	return t;
}

static void add(struct base *b, int kind)
{
	b->kind = kind;
	b->name = text(any(20));
	b->next = shapes;
	shapes = b;
}

/* leaves old pointers in free memory */
static void churn(void)
{
	void **old[20];

	for (int i = 0; i < 20; i++) {
		size_t n = 4 + any(20);
		old[i] = malloc(n * sizeof(void *));
		for (size_t k = 0; k < n; k++)
			old[i][k] = any(2) ? (void *)shapes : (void *)all.users;
	}
	for (int i = 0; i < 20; i++)
		free(old[i]);
}

int main(int argc, char **argv)
{
	root = tree(8);
	for (int i = 0; i < 300; i++) {
		struct circle *c = NEW(struct circle);
		struct square *s = NEW(struct square);
		add(&c->base, 0);
		add(&s->base, 1);
		holders[i] = NEW(holder);
		holders[i]->tree = tree(1);
		holders[i]->inner.spare = leaves(1);
		churn();
		struct pool *p = is(malloc(sizeof *p), "struct pool"); /* pointers beyond count are not set */
		p->count = any(7);
		for (unsigned k = 0; k < p->count; k++)
			p->trees[k] = tree(0);
		p->points = is(calloc(2 + any(5), sizeof(struct point)), "-");
		p->next = all.first;
		all.first = p;
		struct user *u = NEW(struct user);
		u->old = leaves(1);
		u->name = text(any(30));
		u->next = all.users;
		all.users = u;
		if (i % 50 == 0) { /* a pointer that was left, to memory that is used for another thing */
			free(u->old);
			is(u->old, "-");
			keep[i] = memset(is(malloc(sizeof(struct leaf)), "-"), 0, sizeof(struct leaf));
		}
		struct buffer *b = is(malloc(sizeof *b + any(100)), "-");
		b->next = buffers;
		b->length = 0;
		buffers = b;
		struct word *word = NEW(struct word);
		word->next = heads;
		struct words *words = NEW(struct words);
		words->next = (struct head *)word;
		heads = (struct head *)words;
		struct packet *packet = NEW(struct packet);
		packet->body = text(any(300));
		keep[1000 + i] = packet;
	}
	for (int i = 0; i < truths; i++)
		printf("type %llx %s\n", (unsigned long long)(truth[i].masked ^ MASK), truth[i].type);
	fflush(stdout);
	stop(argc > 1);
	return argv == NULL;
}
