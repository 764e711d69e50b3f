/* Leaks 100 bytes a second, and writes a dump every 10 seconds. */
#include <stdlib.h>
#include <zephyr/kernel.h>

#include "lwsbt_zephyr.h"

static void *volatile kept;

void leak(void)
{
	kept = malloc(100);
}

int main(void)
{
	lwsbt_zephyr_begin("sample");
	for (;;) {
		for (int i = 0; i < 10; i++) {
			leak();
			k_sleep(K_SECONDS(1));
		}
		lwsbt_zephyr_dump("interval");
	}
	return 0;
}
