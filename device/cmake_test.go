package device

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// consumer is a program that finds the library in each of the ways of docs/notes/device-ports.md.
const consumer = `cmake_minimum_required(VERSION 3.16)
project(consumer C)
if(USE STREQUAL "installed")
	find_package(lwsbt 0.2 REQUIRED)
elseif(USE STREQUAL "fetched")
	include(FetchContent)
	FetchContent_Declare(lwsbt SOURCE_DIR ${DEVICE})
	FetchContent_MakeAvailable(lwsbt)
else()
	add_subdirectory(${DEVICE} lwsbt)
endif()
add_executable(app ${DEVICE}/../examples/wrap/wrap.c ${DEVICE}/adapters/posix.c)
lwsbt_wrap(app ALIGNED memalign DEFINITIONS LWSBT_WRAP_PORT=lwsbt_posix_port)
target_link_options(app PRIVATE -no-pie)
`

func cmake(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("cmake", args...).CombinedOutput(); err != nil {
		t.Fatalf("cmake %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// cmakeBuild configures a project into a new directory, builds a target, and returns the directory.
func cmakeBuild(t *testing.T, source, target string, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	cmake(t, append([]string{"-S", source, "-B", dir, "-DCMAKE_BUILD_TYPE=MinSizeRel"}, args...)...)
	cmake(t, "--build", dir, "-j2", "--target", target)
	return dir
}

// The example is built against the library in each way, runs, and its dump has its leaks.
func TestCMake(t *testing.T) {
	cmdtest.Long(t)
	need(t, "cmake", "gcc", "make")
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	project := t.TempDir()
	if err := os.WriteFile(filepath.Join(project, "CMakeLists.txt"), []byte(consumer), 0o600); err != nil {
		t.Fatal(err)
	}
	// Whether the library is shared makes a difference to the one that is installed alone.
	for shared, uses := range map[string][]string{"OFF": {"installed", "subdirectory"}, "ON": {"installed", "fetched"}} {
		installed := t.TempDir()
		cmake(t, "--install", cmakeBuild(t, here, "all", "-DBUILD_SHARED_LIBS="+shared), "--prefix", installed)
		for _, use := range uses {
			dir := cmakeBuild(t, project, "app", "-DUSE="+use, "-DDEVICE="+here, "-DBUILD_SHARED_LIBS="+shared, "-DCMAKE_PREFIX_PATH="+installed)
			exe := filepath.Join(dir, "app")
			checkLeaks(t, []string{exe}, exe, slices.Concat(leaks, alignedLeaks))
		}
		t.Run("pkg-config, shared "+shared, func(t *testing.T) {
			need(t, "pkg-config")
			libs, _ := filepath.Glob(filepath.Join(installed, "lib*", "pkgconfig")) // lib, or lib64
			if more, _ := filepath.Glob(filepath.Join(installed, "lib", "*", "pkgconfig")); len(libs) == 0 {
				libs = more
			}
			if len(libs) != 1 {
				t.Fatalf("lwsbt.pc is in %q", libs)
			}
			query := exec.Command("pkg-config", "--cflags", "--libs", "--define-variable=prefix="+installed, "lwsbt")
			query.Env = append(os.Environ(), "PKG_CONFIG_PATH="+libs[0])
			flags, err := query.CombinedOutput()
			if err != nil {
				t.Fatalf("pkg-config: %v\n%s", err, flags)
			}
			exe := filepath.Join(t.TempDir(), "app")
			args := []string{"-no-pie", "-O2", "-o", exe, "../examples/wrap/wrap.c", "adapters/wrap.c", "adapters/posix.c",
				"-DLWSBT_WRAP_PORT=lwsbt_posix_port", "-DLWSBT_WRAP_ALIGNED=memalign", wrapFlags, alignedFlags}
			args = append(args, strings.Fields(string(flags))...)
			if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
				t.Fatalf("gcc: %v\n%s", err, out)
			}
			checkLeaks(t, []string{"env", "LD_LIBRARY_PATH=" + filepath.Dir(libs[0]), exe}, exe, slices.Concat(leaks, alignedLeaks))
		})
	}
}

// TestCMakeCross builds the static libraries with each toolchain file.
func TestCMakeCross(t *testing.T) {
	cmdtest.Long(t)
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file, cc string
		machine  elf.Machine
	}{{"arm-none-eabi.cmake", "arm-none-eabi-gcc", elf.EM_ARM}, {"riscv32-elf.cmake", "riscv64-unknown-elf-gcc", elf.EM_RISCV}} {
		t.Run(c.file, func(t *testing.T) {
			need(t, "cmake", "make", c.cc)
			dir := cmakeBuild(t, here, "all", "-DCMAKE_TOOLCHAIN_FILE="+filepath.Join(here, "cmake", c.file), "-DLWSBT_OPTIONS=LWSBT_TINY;LWSBT_HEAP_DEPTH=16")
			objects, err := filepath.Glob(filepath.Join(dir, "CMakeFiles", "lwsbt_*.dir", "src", "*.c.*"))
			if err != nil || len(objects) == 0 {
				t.Fatalf("no objects in %s", dir)
			}
			for _, path := range objects {
				f, err := elf.Open(path)
				if err != nil {
					continue // a list of dependencies
				}
				if f.Machine != c.machine || f.Class != elf.ELFCLASS32 {
					t.Errorf("%s is of %v, %v, expected %v of 32 bits", filepath.Base(path), f.Machine, f.Class, c.machine)
				}
				f.Close()
			}
			for _, part := range []string{"codec", "capture", "heap"} {
				if _, err := os.Stat(filepath.Join(dir, "liblwsbt_"+part+".a")); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
