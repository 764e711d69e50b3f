/*
 * A program that prints the table of functions of each block, "-" if it has none. Blocks begin with a pointer to the
 * functions of their kind, as drivers do; others begin with pointers to constants, variables or functions.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct object;
struct ops { const char *name; int (*open)(struct object *); int (*read)(struct object *, char *, int); };
struct object { const struct ops *ops; struct object *next; int fd; };
struct disk { struct object object; long sectors[4]; };
struct list { struct list *next, *prev; };
struct item { struct list link; int number; };
struct named { const char *name; int number; };
struct callback { int (*fn)(struct object *); void *arg; };

static int open_any(struct object *o) { return o->fd; }
static int read_any(struct object *o, char *to, int n) { memset(to, o->fd, (size_t)n); return n; }
static const struct ops uart_ops = { "uart", open_any, read_any };
static const struct ops disk_ops = { "disk", open_any, read_any };
const struct ops net_ops = { "net", open_any, NULL };
static const char version[] = "1.2.3 of this program";
static const int primes[] = { 2, 3, 5, 7, 11 };
static struct { struct list items; int (*changed)(struct object *); } server = { { &server.items, &server.items }, open_any };

static struct { uintptr_t masked; const char *type; } truth[40000];
static int truths;
static void *keep[40000];
static const uintptr_t mask = ~(uintptr_t)0 / 3; /* so that the log points to no block */

static void *is(size_t n, const char *type)
{
	void *p = malloc(n);

	if (!p)
		abort();
	keep[truths] = p;
	truth[truths].masked = (uintptr_t)p ^ mask;
	truth[truths++].type = type;
	return memset(p, 0, n);
}

static struct object *make(const struct ops *ops, size_t size, const char *type)
{
	struct object *o = is(size, type);

	o->ops = ops;
	return o;
}

__attribute__((noinline)) void stop(void) { __asm__ volatile("" : : : "memory"); }

int main(void)
{
	for (int i = 0; i < 400; i++) {
		make(&uart_ops, sizeof(struct object), "object of uart_ops");
		make(&disk_ops, sizeof(struct disk), "object of disk_ops");
		make(&net_ops, sizeof(struct object) + (size_t)i % 50, "object of net_ops");
		struct item *item = is(sizeof *item, "-");
		item->link.next = i % 2 ? &server.items : (struct list *)keep[truths - 2];
		struct named *named = is(sizeof *named, "-");
		named->name = i % 3 ? version : "text";
		struct callback *callback = is(sizeof *callback, "-");
		callback->fn = open_any;
		const int **numbers = is(sizeof *numbers * 3, "-");
		numbers[0] = numbers[2] = primes;
		strcpy(is(20 + (size_t)i, "-"), version);
		if (i % 50 == 0) { /* a leak */
			make(&uart_ops, sizeof(struct object), "object of uart_ops");
			keep[truths - 1] = NULL;
		}
		if (i % 20 == 0) { /* a list of drivers, and a device that was freed */
			const struct ops **all = is(sizeof *all * 4, "-");
			all[0] = &uart_ops;
			all[1] = &disk_ops;
			all[2] = &net_ops;
			struct object *gone = malloc(sizeof *gone);
			gone->ops = &uart_ops;
			free(gone);
			is(sizeof *gone, "-");
		}
	}
	for (int i = 0; i < truths; i++)
		printf("type %llx %s\n", (unsigned long long)(truth[i].masked ^ mask), truth[i].type);
	fflush(stdout);
	stop();
	return ((struct object *)keep[0])->ops->open(keep[0]);
}
