#pragma once
typedef void *TaskHandle_t;
#define taskSCHEDULER_NOT_STARTED 1
BaseType_t xTaskGetSchedulerState(void);
TaskHandle_t xTaskGetCurrentTaskHandle(void);
uint8_t *pxTaskGetStackStart(TaskHandle_t task);
