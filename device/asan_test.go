package device

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// foreign frees and resizes memory that was not allocated by the heap, between blocks that were: the heap reads the
// words before it.
const foreign = `#include <stdlib.h>
#include <string.h>
#include "lwsbt.h"

void *__real_malloc(size_t size);

int main(void)
{
	void *ours[64], *others[64];

	for (int i = 0; i < 64; i++) {
		ours[i] = malloc(8 + 8 * (unsigned)(i % 32));
		others[i] = i % 2 ? strdup("twenty-three characters") : __real_malloc(8 + 8 * (unsigned)(i % 32));
	}
	for (int i = 0; i < 64; i++) {
		if (i % 3)
			free(others[i]);
		else
			free(realloc(others[i], 100));
	}
	for (int i = 0; i < 64; i++)
		free(ours[i]);
	return lwsbt_wrapped.count != 0 || lwsbt_wrapped.damaged != 0;
}
`

// Programs built with AddressSanitizer may wrap malloc, and free memory that the heap does not know.
func TestAddressSanitizer(t *testing.T) {
	cmdtest.Long(t)
	dir := t.TempDir()
	source := filepath.Join(dir, "foreign.c")
	if err := os.WriteFile(source, []byte(foreign), 0o666); err != nil {
		t.Fatal(err)
	}
	for cc, options := range map[string]string{"gcc": "", "clang": "-DLWSBT_WRAP_NODES=100 -DLWSBT_WRAP_ENTRIES=30"} {
		t.Run(cc, func(t *testing.T) {
			t.Parallel()
			need(t, cc)
			exe := filepath.Join(t.TempDir(), "foreign")
			args := strings.Fields("-g -O0 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-builtin -Iamalgamation -DLWSBT_WRAP " +
				source + " amalgamation/lwsbt.c " + wrapFlags + " -o " + exe + " " + options)
			if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
				if strings.Contains(string(out), "asan") {
					t.Skipf("%s has no AddressSanitizer", cc)
				}
				t.Fatalf("%v\n%s", err, out)
			}
			if out, err := exec.Command(exe).CombinedOutput(); err != nil {
				t.Errorf("%v\n%.3000s", err, out)
			}
		})
	}
}
