package device

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/device/tools/functions"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// Bytes that malloc takes of a task's stack on a Cortex-M3, with capture, encoding and list, as
// qemu's memory has it:
//
//	LWSBT_FULL=1 go test ./device -run TaskStack -v
func TestTaskStack(t *testing.T) {
	cmdtest.Long(t)
	need(t, "arm-none-eabi-gcc", "qemu-system-arm")
	for _, options := range []string{"", "-DLWSBT_TINY", "-DLWSBT_WRAP_RULES=64"} {
		elf := filepath.Join(t.TempDir(), "stack.elf")
		args := strings.Fields(cortexM3 + " -std=gnu99 -nostdlib -Wl,--gc-sections,--wrap=malloc,--wrap=free,--wrap=calloc,--wrap=realloc" +
			" -T test/cortexm3/board.ld -DLWSBT_WRAP_CAPTURE=lwsbt_capture_thumb " + options +
			" -DLWSBT_FUNCTIONS_MAX=1024 test/cortexm3/stack.c adapters/wrap.c src/capture_thumb.c src/capture_functions.c -o " + elf)
		for _, part := range libraryParts {
			args = append(args, "src/"+part+".c")
		}
		if out, err := exec.Command("arm-none-eabi-gcc", append(args, "-lc", "-lgcc")...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, table := range []bool{false, true} { // the table is written into the file
			t.Run(fmt.Sprintf("%s table=%t", options, table), func(t *testing.T) {
				if table {
					if _, err := functions.Patch(elf); err != nil {
						t.Fatal(err)
					}
				}
				out, err := exec.Command("qemu-system-arm", strings.Fields("-M mps2-an385 -semihosting -nographic -monitor none -serial none -kernel "+elf)...).CombinedOutput()
				var cold, warm, frames int
				if _, scan := fmt.Sscanf(string(out), "cold %d\nwarm %d\nframes %d\n", &cold, &warm, &frames); err != nil || scan != nil {
					t.Fatalf("%v, %v in %q", err, scan, out)
				}
				t.Logf("%d bytes, %d with a warm cache; %d frames", cold, warm, frames)
				if frames < 9 || cold < 100 || cold > 512 || warm > cold {
					t.Errorf("%d bytes, then %d, at %d frames: want at most 512", cold, warm, frames)
				}
			})
		}
	}
}
