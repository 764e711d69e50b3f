/*
 * Crashes: a name that is too long runs over the pointer behind it. The crash lines show which call stored through it.
 */
#include <string.h>

#include "board.h"
#include "lwsbt.h"

static void put(void *arg, const char *text, size_t len)
{
	(void)arg;
	board_put(text, len);
}

static void end(void *arg)
{
	(void)arg;
	board_exit();
}

static const struct lwsbt_range ram[] = { { BOARD_RAM, BOARD_RAM_END } };
extern char BOARD_STACK[]; /* of the linker script */
const struct lwsbt_crash_port lwsbt_crash_port = {
	.out = { .put = put }, .ram = ram, .ram_count = 1, .stack_end = BOARD_STACK, .end = end,
};

struct setting {
	char name[8];
	volatile uint32_t *to;
};

static volatile uint32_t rate;
static struct setting setting = { "rate", &rate };

__attribute__((noinline)) static uint32_t setting_store(struct setting *s, uint32_t value)
{
	*s->to = value;
	return value + 1;
}

/* A message: the length of a name, the name, and digits. */
__attribute__((noinline)) static uint32_t message_read(const uint8_t *p)
{
	uint32_t value = 0;

	memcpy(setting.name, p + 1, p[0]); /* and nothing tests the length */
	for (p += 1 + p[0]; *p; p++)
		value = 10 * value + (uint32_t)(*p - '0');
	return setting_store(&setting, value) + value;
}

__attribute__((noinline)) static uint32_t net_poll(void)
{
	static const char *const message[] = { "\4rate125", "\14rate-limits\340""125" };

	for (unsigned i = 0; i < 2; i++)
		rate += message_read((const uint8_t *)message[i]);
	return rate;
}

int main(void)
{
#if defined(__riscv)
	lwsbt_crash_begin();
#endif
	board_put("firmware: started\n", 18);
	net_poll();
	board_put("firmware: ends\n", 15);
	board_exit();
}
