/* Tasks of FreeRTOS (kernel 4269c69a, heap_4, Cortex-M3) with blocks that are lost: 20 of 120 bytes, to which only the unused
   part of a task's stack leads, or nothing, and 8 of 200 bytes. testdata/images/old.elf has zeros instead of code. */
#include <stdint.h>
#include <string.h>
#include "FreeRTOS.h"
#include "task.h"

void *table[64];
static volatile int phase;

static uint32_t next(void)
{
	static uint32_t x = 12345;
	x = x * 1664525u + 1013904223u;
	return x >> 8;
}

__attribute__((noinline)) static void deep(int n)
{
	void *volatile p[40];
	for (int i = 0; i < 10; i++) {
		p[i] = pvPortMalloc(120);
		((char *)p[i])[0] = 1;
	}
	for (int i = 10; i < 40; i++)
		p[i] = 0;
	if (n)
		deep(n - 1);
}

static void churn(void)
{
	for (int k = 0; k < 200; k++) {
		int i = next() % 64;
		if (table[i]) {
			vPortFree(table[i]);
			table[i] = 0;
		} else {
			table[i] = pvPortMalloc(16 + next() % 300);
			memset(table[i], 0x5a, 16);
		}
	}
}

static void worker(void *arg)
{
	deep(1);
	for (;;) {
		phase++;
		vTaskDelay(1000000);
	}
}

static void holder(void *arg)
{
	void *volatile mine[12];
	for (int i = 0; i < 12; i++)
		mine[i] = pvPortMalloc(72);
	while (mine[3] != arg)
		vTaskDelay(1000000);
}

static void lose(void *arg)
{
	churn();
	while (phase < 1)
		vTaskDelay(2);
	for (int i = 0; i < 8; i++) {
		volatile char *p = pvPortMalloc(200);
		p[0] = 1;
	}
	for (;;)
		vTaskDelay(1000000);
}

int main(void)
{
	xTaskCreate(worker, "worker", 400, 0, 3, 0);
	xTaskCreate(holder, "holder", 300, 0, 2, 0);
	xTaskCreate(lose, "main", 500, 0, 1, 0);
	vTaskStartScheduler();
	for (;;)
		;
}
