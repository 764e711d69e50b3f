/* Tasks of FreeRTOS (kernel 4269c69a, heap_4, Cortex-M3): one deleted itself, and the idle task, which frees its stack, does not run. Only
   that stack has 12 blocks of 72 bytes, which are lost. A waiting task has 12 of 56 bytes. testdata/images/deleted.elf has zeros instead
   of code. */
#include "FreeRTOS.h"
#include "task.h"

static volatile int ready;

static void ending(void *arg)
{
	void *volatile mine[12];
	for (int i = 0; i < 12; i++)
		mine[i] = pvPortMalloc(72);
	ready++;
	vTaskDelete(mine[3] ? arg : 0);
}

static void holder(void *arg)
{
	void *volatile mine[12];
	for (int i = 0; i < 12; i++)
		mine[i] = pvPortMalloc(56);
	ready++;
	while (mine[3] != arg)
		vTaskDelay(1000000);
}

static void busy(void *arg)
{
	while (ready < 2)
		;
	for (;;)
		ready = 100;
}

void vApplicationStackOverflowHook(TaskHandle_t task, char *name)
{
	for (;;)
		;
}

int main(void)
{
	xTaskCreate(ending, "ending", 200, 0, 3, 0);
	xTaskCreate(holder, "holder", 200, 0, 2, 0);
	xTaskCreate(busy, "busy", 100, 0, 1, 0);
	vTaskStartScheduler();
	for (;;)
		;
}
