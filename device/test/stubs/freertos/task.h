#pragma once
typedef struct tskTaskControlBlock *TaskHandle_t;
typedef enum { eRunning, eReady, eBlocked, eSuspended, eDeleted, eInvalid } eTaskState;
typedef struct {
	TaskHandle_t xHandle;
	const char *pcTaskName;
	UBaseType_t xTaskNumber;
	eTaskState eCurrentState;
	UBaseType_t uxCurrentPriority, uxBasePriority;
	uint32_t ulRunTimeCounter;
	StackType_t *pxStackBase, *pxTopOfStack, *pxEndOfStack;
	uint16_t usStackHighWaterMark;
} TaskStatus_t;
void vTaskSuspendAll(void);
BaseType_t xTaskResumeAll(void);
UBaseType_t uxTaskGetNumberOfTasks(void);
void vTaskGetInfo(TaskHandle_t task, TaskStatus_t *s, BaseType_t free, eTaskState state);
TickType_t xTaskGetTickCount(void);
UBaseType_t uxTaskGetSystemState(TaskStatus_t *list, UBaseType_t n, uint32_t *total);
void vTaskDelay(TickType_t ticks);
BaseType_t xTaskCreate(void (*f)(void *), const char *name, uint16_t stack, void *arg, UBaseType_t priority, TaskHandle_t *task);
void vTaskStartScheduler(void);
