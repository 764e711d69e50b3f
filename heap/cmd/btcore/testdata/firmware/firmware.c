/*
 * Firmware that leaks, writes past the end of a block, and dies of it. Its heap is
 * device/'s, on the C library's malloc. Made for Cortex-M3 and RISC-V under qemu.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "lwsbt.h"

/* ------------------------------------------------------------------ machine */

#ifdef __riscv
#define UART (*(volatile unsigned char *)0x10000000)
#else
#define UART (*(volatile uint32_t *)0x40004000)
#define UART_CTRL (*(volatile uint32_t *)0x40004008)
#endif

static void print(const char *s)
{
	while (*s)
		UART = (unsigned char)*s++;
}

extern char heap_start[], heap_end[];

void *_sbrk(intptr_t n)
{
	static char *brk = heap_start;
	char *old = brk;

	if (n > heap_end - brk)
		return (void *)-1;
	brk += n;
	return old;
}

void *sbrk(intptr_t n) { return _sbrk(n); }

/* --------------------------------------------------------------------- heap */

#ifdef __riscv
/* -fno-omit-frame-pointer: return address and the caller's frame below the frame */
static size_t capture(uintptr_t *pcs, size_t max, size_t skip, const struct lwsbt_capture_ctx *ctx)
{
	uintptr_t *fp = __builtin_frame_address(0);
	size_t n = 0;

	__asm__ volatile("" : : "r"(ctx) : "ra"); /* a leaf has no return address in its frame */
	while (n < max && (char *)fp > heap_end && fp[-1]) {
		if (skip)
			skip--;
		else
			pcs[n++] = fp[-1];
		fp = (uintptr_t *)fp[-2];
	}
	return n;
}
#else
#include <unwind.h>

struct walk {
	uintptr_t *pcs;
	size_t n, max, skip;
};

static _Unwind_Reason_Code frame(struct _Unwind_Context *c, void *arg)
{
	struct walk *w = arg;

	if (w->n == w->max)
		return _URC_END_OF_STACK;
	if (w->skip)
		w->skip--;
	else
		w->pcs[w->n++] = _Unwind_GetIP(c);
	return _URC_NO_REASON;
}

static size_t capture(uintptr_t *pcs, size_t max, size_t skip, const struct lwsbt_capture_ctx *ctx)
{
	struct walk w = { pcs, 0, max, skip + 1 };

	(void)ctx;
	_Unwind_Backtrace(frame, &w);
	return w.n;
}
#endif

static void damaged(void *arg, enum lwsbt_damage what, const struct lwsbt_node *node)
{
	(void)arg, (void)what, (void)node;
	print("heap corrupted, halted\n");
	for (;;)
		__asm__ volatile("wfi" : : : "memory");
}

static const struct lwsbt_port port = { .damaged = damaged };
static struct lwsbt_heap lwsbt_heap = { .capture = capture, .port = &port, .flags = LWSBT_CHECK_UNTRACKED };
static const struct lwsbt_allocator allocator = { .allocate = malloc, .resize = realloc, .release = free };

#define NOINLINE __attribute__((noinline, noclone))

static NOINLINE void *allocate(size_t size)
{
	return lwsbt_heap_malloc(&lwsbt_heap, &allocator, size, __builtin_return_address(0));
}

static void release(void *p) { lwsbt_heap_free(&lwsbt_heap, &allocator, p); }

/* ------------------------------------------------------------------ program */

struct session {
	struct session *next;
	char *name;
	char token[20];
};

static struct session *sessions;	/* all that are open */

static NOINLINE char *parse_header(const char *text)
{
	char *copy = allocate(strlen(text) + 1);

	strcpy(copy, text);
	return copy;
}

static NOINLINE void set_text(char *to, const char *text)
{
	while ((*to++ = *text++))	/* whatever the length */
		;
}

static NOINLINE void set_name(struct session *s, const char *name)
{
	s->name = allocate(16);
	set_text(s->name, name);
}

static NOINLINE struct session *open_session(const char *name)
{
	struct session *s = allocate(sizeof *s);

	s->next = sessions;
	sessions = s;
	memset(s->token, 0x55, sizeof s->token);
	set_name(s, name);
	return s;
}

static NOINLINE void handle_request(const char *request, int error)
{
	char *header = parse_header(request);

	if (error)
		return;			/* and the header is forgotten */
	release(header);
}

int main(void)
{
	struct session *attic;
	char *cache;
	int i;

#ifndef __riscv
	UART_CTRL = 1;
#endif
	print("gateway up\n");
	open_session("kitchen");
	for (i = 0; i < 12; i++)
		handle_request("GET /state HTTP/1.1", i % 3 == 1);
	open_session("garden");
	attic = open_session("attic");
	cache = allocate(300);
	set_text(attic->name, "the room under the roof, behind the old wardrobe, where nobody looks");
	release(cache);
	print("not reached\n");
	return 0;
}
