/* The sample on QEMU's mps2-an385 (Cortex-M3) and virt (RV32). */
#ifndef FREERTOS_CONFIG_H
#define FREERTOS_CONFIG_H

#define configUSE_TRACE_FACILITY 1		/* for lwsbt */
#define configRECORD_STACK_HIGH_ADDRESS 1	/* for lwsbt */
#define configUSE_MALLOC_FAILED_HOOK 1

#define configUSE_PREEMPTION 1
#define configUSE_IDLE_HOOK 0
#define configUSE_TICK_HOOK 0
#define configCPU_CLOCK_HZ 25000000u
#define configTICK_RATE_HZ 1000u
#define configMAX_PRIORITIES 4
#define configMINIMAL_STACK_SIZE 256
#define configMAX_TASK_NAME_LEN 12
#define configUSE_16_BIT_TICKS 0
#define configIDLE_SHOULD_YIELD 1
#define configUSE_MUTEXES 0
#define configUSE_TIMERS 0
#define configTOTAL_HEAP_SIZE (32 * 1024)
#define configSUPPORT_STATIC_ALLOCATION 0
#define configSUPPORT_DYNAMIC_ALLOCATION 1
#define configCHECK_FOR_STACK_OVERFLOW 0

#define INCLUDE_vTaskDelay 1
#define INCLUDE_uxTaskGetStackHighWaterMark 0

#if defined(__riscv)
#define configMTIME_BASE_ADDRESS 0x200bff8
#define configMTIMECMP_BASE_ADDRESS 0x2004000
#define configISR_STACK_SIZE_WORDS 512
#else
#define configPRIO_BITS 3
#define configKERNEL_INTERRUPT_PRIORITY (7 << 5)
#define configMAX_SYSCALL_INTERRUPT_PRIORITY (5 << 5)
#define vPortSVCHandler SVC_Handler
#define xPortPendSVHandler PendSV_Handler
#define xPortSysTickHandler SysTick_Handler
#define configCHECK_HANDLER_INSTALLATION 0
#endif

#define configASSERT(x) do { if (!(x)) stop(1); } while (0)
void stop(int code);

#endif
