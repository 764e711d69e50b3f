/*
 * Tasks in five states, and a crash: -DCRASH_IN=1 in a task, 2 in an interrupt, 3 by the kernel's check of the stack, 4 by
 * a failed assertion. Functions stay as they are written, so that the stacks are known.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "FreeRTOS.h"
#include "task.h"
#include "queue.h"

#include "lwsbt.h"

#define KEEP __attribute__((noinline, noclone, noipa))
#define WRONG ((volatile uint32_t *)(uintptr_t)0xe0200000)

void put(void *arg, const char *text, size_t len);
void stop(int code);

volatile uint32_t work, sink;
static QueueHandle_t inbox;
static volatile int go;

static KEEP uint32_t sensor_wait(uint32_t *buf, uint32_t n) { buf[n & 7] = n; vTaskDelay(100000); return buf[(n + 1) & 7]; }
static KEEP uint32_t sensor_read(uint32_t n) { uint32_t b[8] = { n }; uint32_t r = sensor_wait(b, n) + b[3]; sink = r; return r; }
static KEEP void sensor(void *arg) { (void)arg; for (;;) work += sensor_read(work) + 1; }

static KEEP int net_receive(uint32_t *m) { int r = xQueueReceive(inbox, m, portMAX_DELAY); sink = *m; return r + (int)sink; }
static KEEP int net_packet(int depth)
{
	uint32_t m[5] = { 0 };
	int r = depth > 0 ? net_packet(depth - 1) : net_receive(m);

	sink += (uint32_t)r + m[depth & 3];
	return r;
}
static KEEP void net(void *arg) { (void)arg; for (;;) sink = (uint32_t)net_packet(3) + 1; }

static KEEP void log_sleep(void) { vTaskSuspend(NULL); sink = 5; }
static KEEP void log_line(const char *s) { sink = (uint32_t)*s; log_sleep(); sink++; }
static KEEP void logger(void *arg) { (void)arg; for (;;) { log_line("x"); sink++; } }

static KEEP uint32_t ctrl_mix(uint32_t a, uint32_t b)
{
	while (!go) {
		a = a * 1664525u + b;
		b ^= a >> 7;
	}
	return a ^ b;
}
static KEEP uint32_t ctrl_step(uint32_t n)
{
	uint32_t t[12], r;

	for (uint32_t i = 0; i < 12; i++)
		t[i] = n + i;
	r = ctrl_mix(t[n % 12], n);
	sink = t[r % 12];
	return r;
}
static KEEP void ctrl(void *arg) { (void)arg; for (;;) { sink += ctrl_step(work + 1); sink++; } }

static KEEP void gone(void *arg) { (void)arg; vTaskDelay(2); vTaskDelete(NULL); }

static KEEP void write_config(volatile uint32_t *to, uint32_t v) { *to = v; sink = *to + 1; }
static KEEP void apply(uint32_t v) { uint32_t t[6] = { v }; write_config(WRONG, t[v % 6] + 1); sink += t[2]; }
static KEEP uint32_t deep(uint32_t n) { uint32_t t[16]; t[n & 15] = n; sink = t[3] = n ? deep(n - 1) : 0; vTaskDelay(1); return t[n & 15] + sink; }
static KEEP void check(uint32_t v) { configASSERT(v == 3); sink = v; }

static KEEP void boom(void *arg)
{
	(void)arg;
	vTaskDelay(20);
	if (CRASH_IN == 1)
		apply(7);
	else if (CRASH_IN == 3)
		deep(30);
	else if (CRASH_IN == 4)
		check(7);
	sink = 2;
	for (;;)
		vTaskDelay(20);
}

/* In the interrupt of the timer, while ctrl computes */
static KEEP void tick_work(uint32_t v) { apply(v); sink = 3; }
void vApplicationTickHook(void)
{
	static int n;

	if (CRASH_IN == 2 && ++n == 30)
		tick_work(8);
}

void vApplicationStackOverflowHook(TaskHandle_t task, char *name)
{
	(void)task, (void)name;
	lwsbt_crash(LWSBT_CRASH_STACK);
}

static void ended(void *arg) { (void)arg; stop(0); }

#if defined(__riscv)
static const struct lwsbt_range ram[] = { { 0x80000000, 0x88000000 } };
#else
static const struct lwsbt_range ram[] = { { 0x20000000, 0x20040000 } };
#endif
const struct lwsbt_crash_port lwsbt_crash_port = { .out = { put, NULL }, .ram = ram, .ram_count = 1, .end = ended };

int main(void)
{
#if defined(__riscv)
	__asm__ volatile("csrw mtvec, %0" : : "r"(lwsbt_crash_handler));
#endif
	inbox = xQueueCreate(4, 4);
	xTaskCreate(gone, "gone", 256, NULL, 5, NULL);
	xTaskCreate(sensor, "sensor", 256, NULL, 3, NULL);
	xTaskCreate(net, "net", 300, NULL, 2, NULL);
	xTaskCreate(logger, "log", 260, NULL, 3, NULL);
	xTaskCreate(ctrl, "ctrl", 280, NULL, 1, NULL);
	sink = (uint32_t)(uintptr_t)pvPortMalloc(4096); /* what boom's stack grows into */
	xTaskCreate(boom, "boom", 270, NULL, 4, NULL);
	vTaskStartScheduler();
	return 1;
}
