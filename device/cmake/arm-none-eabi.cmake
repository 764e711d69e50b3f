# A toolchain file for Cortex-M with newlib: cmake -DCMAKE_TOOLCHAIN_FILE=…/arm-none-eabi.cmake.
# LWSBT_CPU selects another core.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR arm)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
if(NOT LWSBT_CPU)
	set(LWSBT_CPU cortex-m3)
endif()
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES LWSBT_CPU)
set(CMAKE_C_FLAGS_INIT "-mcpu=${LWSBT_CPU} -mthumb")
set(CMAKE_C_FLAGS_MINSIZEREL_INIT "-Os -g")
