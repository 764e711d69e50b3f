/*
 * app.c: a small program that leaks. It opens and closes sessions; one that
 * fails is closed without its buffer. The heap is dumped to the UART from time to
 * time: see which call path grows by
 *
 *   qemu-system-arm -M mps2-an385 -nographic -semihosting -kernel build/mps2.elf |
 *       btdecode --passthrough -e build/mps2.elf
 *
 * mps2-paths.elf has the same program with a profile: blocks are counted by call path, and the
 * ELF file says where the code is.
 */
#include "board.h"

#include <stdlib.h>
#include <string.h>

#include "lwsbt.h"

extern struct lwsbt_heap lwsbt_wrapped;	/* of device/adapters/wrap.c */

#define NOINLINE __attribute__((noinline))
#define DUMPS 4

/* ---------------------------------------------------------------- the leak */

struct session {
	struct session *next;
	unsigned number;
	char *buffer;
};

static struct session *sessions;

NOINLINE static char *buffer_new(unsigned number)
{
	char *b = malloc(200 + number % 3);

	if (b)
		memset(b, (int)number, 200);
	return b;
}

NOINLINE static struct session *session_open(unsigned number)
{
	struct session *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->number = number;
	s->buffer = buffer_new(number);
	s->next = sessions;
	sessions = s;
	return s;
}

NOINLINE static void session_close(struct session *s, int failed)
{
	sessions = s->next;
	if (!failed)		/* the leak */
		free(s->buffer);
	free(s);
}

/* Recursive, as parsers are: a node for each level. */
struct node {
	struct node *child;
	int value;
};

NOINLINE static struct node *parse(int depth)
{
	struct node *n = malloc(sizeof *n);

	if (!n)
		return NULL;
	n->value = depth;
	n->child = depth > 0 ? parse(depth - 1) : NULL;
	return n;
}

NOINLINE static void node_free(struct node *n)
{
	struct node *child;

	for (; n; n = child) {
		child = n->child;
		free(n);
	}
}

NOINLINE static void net_poll(unsigned tick)
{
	struct session *s = session_open(tick);

	node_free(parse((int)(tick % 5)));
	if (s)
		session_close(s, tick % 4 == 3);
}

NOINLINE static void sensor_poll(unsigned tick)
{
	static char *last;

	free(last);
	last = malloc(16 + tick % 8);
}

/* -------------------------------------------------------------------- dumps */

static void put(void *arg, const char *text, size_t len)
{
	(void)arg;
	board_put(text, len);
}

static void print(const char *text)
{
	board_put(text, strlen(text));
}

static const struct lwsbt_out uart = {put, NULL};

#ifdef LWSBT_WRAP_NODES
extern struct lwsbt_profile lwsbt_wrapped_profile;	/* of device/adapters/wrap.c */
extern char board_build[], heap_start[], heap_end[];	/* of the linker script */

LWSBT_NOTE_CODE(LWSBT_CODE_SHIFT, board_code_lo, board_code_hi);
LWSBT_NOTE_HEAP(heap_start, heap_end);
LWSBT_NOTE_TEXT("1.0");

static void heap_begin(void)
{
	static struct lwsbt_range code;
	struct lwsbt_device device = {.prog = "firmware", .fw = "1.0", .build = board_build};

	code.start = (uintptr_t)board_code_lo;
	code.end = (uintptr_t)board_code_hi;
	lwsbt_wrapped_profile.code.range = &code;
	lwsbt_wrapped_profile.code.count = 1;
	lwsbt_wrapped_profile.code.shift = LWSBT_CODE_SHIFT;
	lwsbt_head_device(&uart, &device);	/* without code: the note has it */
}

static void dump_heap(uint32_t number)
{
	static struct lwsbt_profile_dump state = {.lines = {.out = &uart}};

	lwsbt_profile_dump(&lwsbt_wrapped_profile, &state, number, "interval", LWSBT_SORT | LWSBT_NAMES);
}
#else
static void heap_begin(void) { lwsbt_head_boot(&uart, "firmware", LWSBT_NONE, LWSBT_NONE); }
static void dump_heap(uint32_t number) { lwsbt_dump(&lwsbt_wrapped, &uart, number, "interval", 0); }
#endif

int main(void)
{
	unsigned tick;
	uint32_t dump = 0;

	lwsbt_wrapped.ctx.lo = (uintptr_t)board_stack_lo;
	lwsbt_wrapped.ctx.hi = (uintptr_t)board_stack_hi;
	lwsbt_wrapped.ctx.code_lo = (uintptr_t)board_code_lo;
	lwsbt_wrapped.ctx.code_hi = (uintptr_t)board_code_hi;
	lwsbt_wrapped.ctx.functions = lwsbt_function_table();
	print("firmware: started\n");
	heap_begin();
	for (tick = 0; dump < DUMPS; tick++) {
		net_poll(tick);
		sensor_poll(tick);
		if (tick % 16 == 15) {
			print("firmware: 16 sessions later\n");
			dump_heap(dump++);
		}
	}
	print("firmware: ends\n");
	board_exit();
}
