#pragma once
typedef struct { void *pxTCB; uint8_t *pxTopOfStack, *pxEndOfStack; } TaskSnapshot_t;
BaseType_t vTaskGetSnapshot(TaskHandle_t task, TaskSnapshot_t *snapshot);
