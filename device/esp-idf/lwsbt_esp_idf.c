/*
 * lwsbt_esp_idf.c: the port to ESP-IDF (v5.0 and later), and its console as the output.
 */
#include "lwsbt_esp_idf.h"

#include <inttypes.h>
#include <stdio.h>

#include "esp_heap_caps.h"
#include "esp_timer.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#if __has_include("freertos/freertos_debug.h")
#include "freertos/freertos_debug.h"
#else	/* an older ESP-IDF */
#include "freertos/task_snapshot.h"
#endif
#include "sdkconfig.h"

extern char _text_start, _text_end;	/* of ESP-IDF's linker scripts: code in flash */

#if __has_include("esp_idf_version.h")
#include "esp_idf_version.h"
#endif
#if defined(ESP_IDF_VERSION_MAJOR) && ESP_IDF_VERSION_MAJOR >= 6
#define stack_start xTaskGetStackStart
#else
#define stack_start pxTaskGetStackStart
#endif

static portMUX_TYPE mutex = portMUX_INITIALIZER_UNLOCKED;

static void lock(void *arg)
{
	(void)arg;
	portENTER_CRITICAL_SAFE(&mutex);
}

static void unlock(void *arg)
{
	(void)arg;
	portEXIT_CRITICAL_SAFE(&mutex);
}

static int in_interrupt(void *arg)
{
	(void)arg;
	return xPortInIsrContext();
}

static void stack(void *arg, struct lwsbt_capture_ctx *ctx)
{
	TaskSnapshot_t task;

	(void)arg;
	ctx->lo = ctx->hi = 0;
	if (xTaskGetSchedulerState() == taskSCHEDULER_NOT_STARTED)
		return;
	if (vTaskGetSnapshot(xTaskGetCurrentTaskHandle(), &task) != pdTRUE)
		return;
	ctx->lo = (uintptr_t)stack_start(NULL);
	ctx->hi = (uintptr_t)task.pxEndOfStack;
}

/* A byte for each task, so that one that preempts another inside the library is recorded, too.
 * Where two share a byte, one of their allocations may have no metadata, which is counted. */
static unsigned char guards[61];

static unsigned char *guard(void *arg)
{
	(void)arg;
	return &guards[((uintptr_t)xTaskGetCurrentTaskHandle() >> 4) % sizeof guards];
}

static uint64_t now(void *arg)
{
	(void)arg;
	return (uint64_t)esp_timer_get_time();
}

static uintptr_t thread(void *arg)
{
	(void)arg;
	return (uintptr_t)xTaskGetCurrentTaskHandle();
}

const struct lwsbt_port lwsbt_esp_idf_port = {
	.lock = lock,
	.unlock = unlock,
	.guard = guard,
	.in_interrupt = in_interrupt,
	.stack = stack,
	.time = now,
	.thread = thread,
};

static void put(void *arg, const char *text, size_t len)
{
	(void)arg;
	fwrite(text, 1, len, stdout);
}

static const struct lwsbt_out console = { put, NULL };

static void limits(struct lwsbt_capture_ctx *ctx)
{
#if !CONFIG_IDF_TARGET_ARCH_XTENSA
	ctx->code_lo = (uintptr_t)&_text_start;
	ctx->code_hi = (uintptr_t)&_text_end;
#else
	(void)ctx;	/* code is in flash and in RAM */
#endif
}

#if CONFIG_LWSBT_WRAP

extern struct lwsbt_heap lwsbt_wrapped;	/* of wrap.c */

void lwsbt_esp_idf_begin(const char *name)
{
	limits(&lwsbt_wrapped.ctx);
	lwsbt_head_boot(&console, name, LWSBT_NONE, LWSBT_NONE);
}

void lwsbt_esp_idf_dump(const char *why)
{
	static uint32_t number;

	lwsbt_dump(&lwsbt_wrapped, &console, number++, why, LWSBT_KEEP_ADDRESS | LWSBT_KEEP_CHECK);
	printf("~h#heap size=%zu free=%zu largest=%zu min=%zu\n", heap_caps_get_total_size(MALLOC_CAP_DEFAULT),
		heap_caps_get_free_size(MALLOC_CAP_DEFAULT), heap_caps_get_largest_free_block(MALLOC_CAP_DEFAULT),
		heap_caps_get_minimum_free_size(MALLOC_CAP_DEFAULT));
}

#elif CONFIG_LWSBT_HOOKS

extern struct lwsbt_capture_ctx lwsbt_hook_ctx;	/* of hooks.c */
void lwsbt_hook_allocated(const void *p, size_t size);
void lwsbt_hook_freed(const void *p);

/* The console's own buffer is allocated inside a hook, which is then left out. */
const struct lwsbt_out lwsbt_hook_out = { put, NULL };

static volatile int begun;

void lwsbt_esp_idf_begin(const char *name)
{
	limits(&lwsbt_hook_ctx);
	lwsbt_head_boot(&console, name, LWSBT_NONE, LWSBT_NONE);
	begun = 1;
}

void esp_heap_trace_alloc_hook(void *p, size_t size, uint32_t caps)
{
	(void)caps;
	if (begun)
		lwsbt_hook_allocated(p, size);
}

void esp_heap_trace_free_hook(void *p)
{
	if (begun)
		lwsbt_hook_freed(p);
}

#endif
