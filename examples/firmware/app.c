/*
 * app.c: a small program that leaks. It opens and closes sessions; one that
 * fails is closed without its buffer. The heap is dumped to the UART from time to
 * time: see which call path grows by
 *
 *   qemu-system-arm -M mps2-an385 -nographic -semihosting -kernel build/mps2.elf |
 *       btdecode --passthrough -e build/mps2.elf
 *
 * mps2-paths.elf has the same program with a profile: blocks are counted by call path.
 */
#include "board.h"

#include <stdlib.h>
#include <string.h>

#include "lwsbt.h"

#define NOINLINE __attribute__((noinline))
#define DUMPS 8

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

static uint64_t now(void *arg)
{
	(void)arg;
	return board_us();
}

static void print(const char *text)
{
	board_put(text, strlen(text));
}

const struct lwsbt_out lwsbt_wrap_out = { .put = put };
const struct lwsbt_port lwsbt_wrap_port = { .time = now };

#ifdef LWSBT_WRAP_NODES	/* for readers of the ELF file; symbols of mps2.ld */
LWSBT_NOTE_CODE(LWSBT_CODE_SHIFT, _stext, _etext);
LWSBT_NOTE_HEAP(heap_start, heap_end);
LWSBT_NOTE_TEXT("1.0");
#endif

int main(void)
{
	unsigned tick, dumps = 0;

	print("firmware: started\n");
	lwsbt_wrap_begin("firmware", "1.0");
	for (tick = 0; dumps < DUMPS; tick++) {
		net_poll(tick);
		sensor_poll(tick);
		if (tick % 16 == 15) {
			while (board_us() < 50000 * (dumps + 1))
				;
			print("firmware: 16 sessions later\n");
			lwsbt_wrap_dump("interval");
			dumps++;
		}
	}
	print("firmware: ends\n");
	board_exit();
}
