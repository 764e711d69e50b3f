# A toolchain file for RV32 with picolibc: cmake -DCMAKE_TOOLCHAIN_FILE=…/riscv32-elf.cmake.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR riscv)
set(CMAKE_C_COMPILER riscv64-unknown-elf-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_C_FLAGS_INIT "-march=rv32imac -mabi=ilp32 -mcmodel=medany --specs=picolibc.specs")
set(CMAKE_C_FLAGS_MINSIZEREL_INIT "-Os -g")
