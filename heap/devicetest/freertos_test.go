package devicetest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// A freertosBoard is one that the sample of freertos/ runs on. Paths are relative to device/, or to the kernel's portable/.
type freertosBoard struct{ name, cc, args, port, files, run string }

var freertosBoards = []freertosBoard{
	{"Cortex-M3, heap_4", "arm-none-eabi-gcc", "-mcpu=cortex-m3 -mthumb -specs=nosys.specs -DLWSBT_FREERTOS_CAPTURE=lwsbt_capture_thumb -DLWSBT_FUNCTIONS_MAX=1024 -T ../examples/firmware/mps2.ld",
		"ARM_CM3", "freertos/sample/mps2.c MemMang/heap_4.c GCC/ARM_CM3/port.c", "qemu-system-arm -M mps2-an385 -nographic -semihosting -kernel"},
	{"RV32, heap_5", "riscv64-unknown-elf-gcc", "-march=rv32imac -mabi=ilp32 -misa-spec=2.2 -mcmodel=medany --specs=picolibc.specs -DLWSBT_FREERTOS_CAPTURE=lwsbt_capture_riscv -DLWSBT_SAMPLE_HEAP_5 -T freertos/sample/virt.ld -IGCC/RISC-V/chip_specific_extensions/RISCV_MTIME_CLINT_no_extensions",
		"RISC-V", "freertos/sample/virt.c MemMang/heap_5.c GCC/RISC-V/port.c GCC/RISC-V/portASM.S", "qemu-system-riscv32 -M virt -bios none -nographic -kernel"},
}

// TestFreeRTOS runs the sample under the real kernel, whose sources are at LWSBT_FREERTOS.
// Each of the first three dumps has 5 blocks of 101 bytes more, all of leak in the task
// leaky; the other task has none or one, of borrow. The last dump is that of the failed
// allocation.
func TestFreeRTOS(t *testing.T) {
	kernel := os.Getenv("LWSBT_FREERTOS")
	if kernel == "" {
		t.Skip("LWSBT_FREERTOS is not set to the sources of FreeRTOS-Kernel")
	}
	t.Chdir("../../device") // the paths below are relative to it
	for _, b := range freertosBoards {
		t.Run(b.name, func(t *testing.T) {
			run := strings.Fields(b.run)
			exe := b.build(t, kernel, "-Ifreertos/sample freertos/sample/main.c freertos/lwsbt_freertos.c "+
				"-Wl,--wrap=pvPortMalloc,--wrap=vPortFree,--wrap=pvPortCalloc", "")
			if b.port == "ARM_CM3" {
				if out, err := exec.Command("go", "run", "../heap/cmd/btcore", "functable", exe).CombinedOutput(); err != nil {
					t.Fatalf("functable: %v\n%s", err, out)
				}
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			out, err := exec.CommandContext(ctx, run[0], append(run[1:], exe)...).Output()
			if err != nil {
				t.Fatalf("%s: %v\n%s", b.run, err, out)
			}
			for _, name := range []string{"leaky", "sound", "IDLE"} {
				if !strings.Contains(string(out), " name="+name+"\n") {
					t.Errorf("no name of task %s", name)
				}
			}
			checkSample(t, exe, string(out))
		})
	}
}

// build builds a program with the kernel and the sources of device/src. args are its own. files replaces the heap of the board.
func (b freertosBoard) build(t *testing.T, kernel, own, heap string) string {
	t.Helper()
	cmdtest.Need(t, b.cc, strings.Fields(b.run)[0])
	exe := filepath.Join(t.TempDir(), "sample.elf")
	portable := filepath.Join(kernel, "portable")
	args := strings.Fields("-Os -g -std=gnu11 -Wall -Wextra -Iinclude -Ifreertos -ffunction-sections -fdata-sections -nostartfiles " +
		"-Wl,--gc-sections,--no-warn-rwx-segments " + b.args + " " + own)
	for i, a := range args {
		args[i] = strings.Replace(a, "-IGCC", "-I"+portable+"/GCC", 1)
	}
	args = append(args, "-I"+kernel+"/include", "-I"+portable+"/GCC/"+b.port, "-o", exe, kernel+"/tasks.c", kernel+"/list.c", kernel+"/queue.c")
	for _, f := range strings.Fields(b.files) {
		if strings.HasPrefix(f, "MemMang/") && heap != "" {
			f = heap
		}
		if !strings.HasPrefix(f, "freertos/") {
			f = filepath.Join(portable, f)
		}
		args = append(args, f)
	}
	sources, err := filepath.Glob("src/*.c")
	if err != nil || len(sources) == 0 {
		t.Fatal("no sources")
	}
	if out, err := exec.Command(b.cc, append(args, sources...)...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", b.cc, err, out)
	}
	return exe
}

// crash builds the program that crashes.
func (b freertosBoard) crash(t *testing.T, kernel, in string) string {
	handler := "-DLWSBT_CRASH_HANDLER=HardFault_Handler"
	if b.port != "ARM_CM3" {
		handler = "-DLWSBT_CRASH_NEXT=freertos_risc_v_trap_handler"
	}
	return b.build(t, kernel, "-fomit-frame-pointer -I../heap/devicetest/testdata/crash ../heap/devicetest/testdata/crash/tasks.c adapters/crash.c"+
		" -DLWSBT_CRASH_TASKS=8 -DCRASH_IN="+in+" "+handler, "MemMang/heap_4.c")
}

// checkSample checks the dumps of the sample.
func checkSample(t *testing.T, exe, log string) {
	r, err := heaplog.Open(context.Background(), heaplog.Stream(strings.NewReader(log), "serial.log"), heaplog.Exe(exe))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	n := 0
	for d, err := range r.Dumps() {
		if err != nil {
			t.Fatal(err)
		}
		n++
		if !d.Complete() {
			t.Errorf("dump %d is not complete", n)
		}
		found := map[string]profile.Value{}
		for a := range d.Allocations() {
			var names []string
			for f := range a.Frames() {
				names = append(names, f.Name)
			}
			if i := slices.IndexFunc(names, func(s string) bool { return s == "leaky" || s == "sound" }); i >= 0 {
				key := strings.Join(names[:i+1], "<")
				v := found[key]
				found[key] = profile.Value{Count: v.Count + a.Count, Bytes: v.Bytes + a.Bytes}
			}
		}
		leaks := uint64(5 * min(n, 3))
		if want := (profile.Value{Count: leaks, Bytes: 101 * leaks}); found["leak<leaky"] != want {
			t.Errorf("dump %d: leak has %+v, expected %+v; all: %v", n, found["leak<leaky"], want, found)
		}
		if v := found["borrow<sound"]; v.Count > 1 || v.Bytes != 202*v.Count {
			t.Errorf("dump %d: borrow has %+v, expected at most one block of 202", n, v)
		}
		last := found["leaky"]
		if full := n > 3; full != (last.Count > 0) || last.Bytes != 4003*last.Count {
			t.Errorf("dump %d: leaky itself has %+v", n, last)
		}
	}
	if n < 4 {
		t.Errorf("%d dumps, expected 3 and that of the failed allocation\n%s", n, log)
	}
}
