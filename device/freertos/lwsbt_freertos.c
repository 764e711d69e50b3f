/*
 * lwsbt_freertos.c: pvPortMalloc and vPortFree of FreeRTOS (10.4 to 11, heap_4.c or heap_5.c)
 * with metadata. Link with
 *
 *   -Wl,--wrap=pvPortMalloc,--wrap=vPortFree,--wrap=pvPortCalloc
 *
 * FreeRTOSConfig.h needs configUSE_TRACE_FACILITY and configRECORD_STACK_HIGH_ADDRESS, for the
 * limits of the tasks' stacks, and configUSE_MALLOC_FAILED_HOOK as you like.
 *
 *   -DLWSBT_FREERTOS_CAPTURE=lwsbt_capture_thumb   the capture function
 *   -DLWSBT_FREERTOS_TASKS=16                      tasks: for their names, and to distinguish them
 */
#include "lwsbt_freertos.h"

#include <string.h>

#include "FreeRTOS.h"
#include "task.h"

#ifndef LWSBT_FREERTOS_CAPTURE
#define LWSBT_FREERTOS_CAPTURE NULL
#endif
#ifndef LWSBT_FREERTOS_TASKS
#define LWSBT_FREERTOS_TASKS 16
#endif

#if configUSE_TRACE_FACILITY != 1 || configRECORD_STACK_HIGH_ADDRESS != 1
#error "lwsbt: FreeRTOSConfig.h must define configUSE_TRACE_FACILITY and configRECORD_STACK_HIGH_ADDRESS as 1"
#endif

void *__real_pvPortMalloc(size_t size);
void __real_vPortFree(void *p);
void *__wrap_pvPortMalloc(size_t size);
void *__wrap_pvPortCalloc(size_t n, size_t size);
void __wrap_vPortFree(void *p);

static const struct lwsbt_out *output;

static void lock(void *arg)
{
	(void)arg;
	vTaskSuspendAll();
}

static void unlock(void *arg)
{
	(void)arg;
	(void)xTaskResumeAll();
}

#if defined(__arm__)	/* other ports cannot tell */
static int in_interrupt(void *arg)
{
	(void)arg;
	return xPortIsInsideInterrupt() != pdFALSE;
}
#endif

/* self sets *s to the calling task, without the search for its free stack. It returns 0 before the scheduler runs:
 * the stack is then that of main, not of the task that runs first. */
static int self(TaskStatus_t *s)
{
	if (uxTaskGetNumberOfTasks() == 0)
		return 0;
	vTaskGetInfo(NULL, s, pdFALSE, eRunning);
	return (uintptr_t)s >= (uintptr_t)s->pxStackBase && (uintptr_t)s <= (uintptr_t)s->pxEndOfStack;
}

static void stack(void *arg, struct lwsbt_capture_ctx *ctx)
{
	TaskStatus_t s;

	(void)arg;
	if (!self(&s))
		return;
	ctx->lo = (uintptr_t)s.pxStackBase;
	ctx->hi = (uintptr_t)(s.pxEndOfStack + 1);	/* the last word of the stack */
}

/* A byte for each task, so that one that preempts another inside the library is recorded, too.
 * Where two share a byte, one of their allocations may have no metadata, which is counted. */
static unsigned char guards[LWSBT_FREERTOS_TASKS];

static unsigned char *guard(void *arg)
{
	TaskStatus_t s;

	(void)arg;
	return &guards[self(&s) ? s.xTaskNumber % LWSBT_FREERTOS_TASKS : 0];
}

static uint64_t now(void *arg)
{
	(void)arg;
	return (uint64_t)xTaskGetTickCount() * (1000000u / configTICK_RATE_HZ);
}

static uintptr_t thread(void *arg)
{
	TaskStatus_t s;

	(void)arg;
	return self(&s) ? s.xTaskNumber : 0;
}

static const struct lwsbt_port port = {
	.lock = lock,
	.unlock = unlock,
	.guard = guard,
#if defined(__arm__)
	.in_interrupt = in_interrupt,
#endif
	.stack = stack,
	.time = now,
	.thread = thread,
};

struct lwsbt_heap lwsbt_freertos_heap = {
	.flags = LWSBT_KEEP_THREAD,
	.capture = LWSBT_FREERTOS_CAPTURE,
	.port = &port,
};

static const struct lwsbt_allocator real = {
	.allocate = __real_pvPortMalloc,
	.release = __real_vPortFree,
};

void *__wrap_pvPortMalloc(size_t size)
{
	return lwsbt_heap_malloc(&lwsbt_freertos_heap, &real, size, __builtin_return_address(0));
}

void *__wrap_pvPortCalloc(size_t n, size_t size)
{
	return lwsbt_heap_calloc(&lwsbt_freertos_heap, &real, n, size, __builtin_return_address(0));
}

void __wrap_vPortFree(void *p)
{
	lwsbt_heap_free(&lwsbt_freertos_heap, &real, p);
}

/* -------------------------------------------------------------------- output */

static void text(const char *s)
{
	output->put(output->arg, s, strlen(s));
}

static void number(const char *before, size_t v)
{
	char digits[3 * sizeof v];
	size_t n = sizeof digits;

	do {
		digits[--n] = (char)('0' + v % 10);
	} while (v /= 10);
	text(before);
	output->put(output->arg, digits + n, sizeof digits - n);
}

/* A name, with escapes for what a header must not have. [BT-HEAD-1] */
static void name(const char *s)
{
	static const char hex[] = "0123456789ABCDEF";

	for (; *s; s++) {
		const unsigned char c = (unsigned char)*s;
		const char escape[3] = { '%', hex[c >> 4], hex[c & 15] };

		if (c > ' ' && c < 0x7f && c != '%' && c != '~')
			output->put(output->arg, s, 1);
		else
			output->put(output->arg, escape, 3);
	}
}

static void tasks(void)
{
	static TaskStatus_t list[LWSBT_FREERTOS_TASKS];
	UBaseType_t i, n = uxTaskGetSystemState(list, LWSBT_FREERTOS_TASKS, NULL);

	for (i = 0; i < n; i++) {
		number("~h#thread ", list[i].xTaskNumber);
		text(" name=");
		name(list[i].pcTaskName);
		text("\n");
	}
}

static void statistics(void)
{
	HeapStats_t s;

	vPortGetHeapStats(&s);
	number("~h#heap free=", s.xAvailableHeapSpaceInBytes);
	number(" largest=", s.xSizeOfLargestFreeBlockInBytes);
	number(" min=", s.xMinimumEverFreeBytesRemaining);
	text("\n");
}

void lwsbt_freertos_begin(const struct lwsbt_out *out, const char *program)
{
	output = out;
	lwsbt_head_boot(out, program, LWSBT_NONE, LWSBT_NONE);
}

void lwsbt_freertos_dump(const char *why)
{
	static uint32_t dump;

	if (!output)
		return;
	tasks();
	lwsbt_dump(&lwsbt_freertos_heap, output, dump++, why, LWSBT_KEEP_ADDRESS | LWSBT_KEEP_CHECK);
	statistics();
}
