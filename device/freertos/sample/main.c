/*
 * Two tasks: one leaks, the other does not. Writes a dump after each of three rounds, then
 * allocates until there is nothing left, which writes one more.
 */
#include "FreeRTOS.h"
#include "task.h"

#include "lwsbt_freertos.h"

extern char _stext[], _etext[], _end[], _estack[]; /* linker script */

void put(void *arg, const char *text, size_t len);	/* of the board */
void stop(int code);

static const struct lwsbt_out uart = { put, NULL };
static void *volatile kept;

void leak(void)
{
	kept = pvPortMalloc(101);
}

void borrow(void)
{
	void *p = pvPortMalloc(202);

	vTaskDelay(1);
	vPortFree(p);
}

static void leaky(void *arg)
{
	int round, i;

	(void)arg;
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 5; i++) {
			leak();
			vTaskDelay(1);
		}
		lwsbt_freertos_dump("interval");
	}
	while (pvPortMalloc(4003))
		;
	stop(0);
}

static void sound(void *arg)
{
	(void)arg;
	for (;;)
		borrow();
}

void vApplicationMallocFailedHook(void)
{
	lwsbt_freertos_dump("low");
}

int main(void)
{
#ifdef LWSBT_SAMPLE_HEAP_5
	static uint8_t memory[configTOTAL_HEAP_SIZE];
	static const HeapRegion_t regions[] = { { memory, sizeof memory }, { NULL, 0 } };

	vPortDefineHeapRegions(regions);
#endif
	lwsbt_freertos_heap.ctx.code_lo = (uintptr_t)_stext;
	lwsbt_freertos_heap.ctx.code_hi = (uintptr_t)_etext;
	lwsbt_freertos_heap.ctx.lo = (uintptr_t)_end;
	lwsbt_freertos_heap.ctx.hi = (uintptr_t)_estack;
	lwsbt_freertos_heap.ctx.functions = lwsbt_function_table();
	lwsbt_freertos_begin(&uart, "freertos sample");
	xTaskCreate(leaky, "leaky", 1024, NULL, 2, NULL);
	xTaskCreate(sound, "sound", 1024, NULL, 1, NULL);
	vTaskStartScheduler();
	return 1;
}
