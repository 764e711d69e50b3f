# The component of ESP-IDF. device/CMakeLists.txt includes this when ESP-IDF builds.
file(GLOB lwsbt_sources ${CMAKE_CURRENT_LIST_DIR}/../src/*.c)
if(CONFIG_LWSBT_WRAP)
	list(APPEND lwsbt_sources ${CMAKE_CURRENT_LIST_DIR}/../adapters/wrap.c ${CMAKE_CURRENT_LIST_DIR}/lwsbt_esp_idf.c)
elseif(CONFIG_LWSBT_HOOKS)
	list(APPEND lwsbt_sources ${CMAKE_CURRENT_LIST_DIR}/../adapters/hooks.c ${CMAKE_CURRENT_LIST_DIR}/lwsbt_esp_idf.c)
endif()

idf_component_register(SRCS ${lwsbt_sources}
	INCLUDE_DIRS include esp-idf
	PRIV_REQUIRES heap esp_timer esp_hw_support freertos)

if(CONFIG_LWSBT_WRAP OR CONFIG_LWSBT_HOOKS)
	if(CONFIG_IDF_TARGET_ARCH_XTENSA)
		set(lwsbt_capture lwsbt_capture_xtensa)
	else()
		set(lwsbt_capture lwsbt_capture_riscv)
	endif()
	target_compile_definitions(${COMPONENT_LIB} PUBLIC LWSBT_HEAP_DEPTH=${CONFIG_LWSBT_HEAP_DEPTH})
	target_compile_definitions(${COMPONENT_LIB} PRIVATE
		LWSBT_WRAP_PORT=lwsbt_esp_idf_port LWSBT_WRAP_CAPTURE=${lwsbt_capture}
		LWSBT_HOOK_PORT=lwsbt_esp_idf_port LWSBT_HOOK_CAPTURE=${lwsbt_capture} LWSBT_HOOK_SKIP=3)
endif()
if(CONFIG_LWSBT_WRAP)
	target_link_options(${COMPONENT_LIB} INTERFACE "-Wl,--wrap=malloc,--wrap=free,--wrap=calloc,--wrap=realloc")
endif()
