# lwsbt_wrap(TARGET [ALIGNED FUNCTION] [DEFINITIONS NAME=VALUE…])
#
# Compiles adapters/wrap.c into a program and has the linker wrap malloc, free, calloc and
# realloc. ALIGNED also wraps memalign, aligned_alloc and posix_memalign: FUNCTION is the one
# that the C library's two others call (docs/notes/device-ports.md). DEFINITIONS are those of wrap.c,
# such as LWSBT_WRAP_CAPTURE=lwsbt_capture_thumb.
if(NOT LWSBT_ADAPTERS)
	set(LWSBT_ADAPTERS ${CMAKE_CURRENT_LIST_DIR}/../adapters)
endif()
# for calls from other directories than this one
set_property(GLOBAL PROPERTY LWSBT_ADAPTERS ${LWSBT_ADAPTERS})

function(lwsbt_wrap target)
	cmake_parse_arguments(PARSE_ARGV 1 arg "" "ALIGNED" "DEFINITIONS")
	if(arg_UNPARSED_ARGUMENTS)
		message(FATAL_ERROR "lwsbt_wrap(${target}): ${arg_UNPARSED_ARGUMENTS}, expected ALIGNED or DEFINITIONS")
	endif()
	get_property(adapters GLOBAL PROPERTY LWSBT_ADAPTERS)
	target_sources(${target} PRIVATE ${adapters}/wrap.c ${adapters}/begin.c)
	target_link_libraries(${target} PRIVATE lwsbt::lwsbt)
	target_compile_definitions(${target} PRIVATE ${arg_DEFINITIONS})
	target_link_options(${target} PRIVATE "LINKER:--wrap=malloc,--wrap=free,--wrap=calloc,--wrap=realloc")
	if(arg_ALIGNED)
		target_compile_definitions(${target} PRIVATE LWSBT_WRAP_ALIGNED=${arg_ALIGNED})
		target_link_options(${target} PRIVATE "LINKER:--wrap=memalign,--wrap=aligned_alloc,--wrap=posix_memalign")
	endif()
endfunction()
