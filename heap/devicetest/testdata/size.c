/*
 * The least firmware that allocates, to measure what the library adds to it: compiled without lwsbt.c, and
 * with it (LWSBT_WRAP).
 */
#include <stdlib.h>

#include "board.h"

void *volatile kept;

#ifdef LWSBT_WRAP
#include "lwsbt.h"

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

const struct lwsbt_out lwsbt_wrap_out = { .put = put };
const struct lwsbt_port lwsbt_wrap_port = { .time = now };
#ifdef LWSBT_CRASH
static const struct lwsbt_range ram[] = { { BOARD_RAM, BOARD_RAM_END } };
const struct lwsbt_crash_port lwsbt_crash_port = { .out = { .put = put }, .ram = ram, .ram_count = 1 };
#endif
#else
#define lwsbt_wrap_begin(prog, fw) board_put(prog, 4)
#define lwsbt_wrap_dump(why) board_put(why, (size_t)board_us())
#endif

int main(void)
{
	lwsbt_wrap_begin("size", "1.0");
	for (size_t i = 0; i < 4; i++) {
		kept = malloc(10 * i);
		kept = calloc(i, 2);
		kept = realloc(kept, 20);
		free(kept);
		kept = malloc(30);
	}
	lwsbt_wrap_dump("request");
#ifdef LWSBT_CRASH
	lwsbt_crash_task(kept, kept, kept, "main");
#endif
	board_exit();
}
