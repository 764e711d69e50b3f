package device

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/codec"
)

// avrProgram encodes stacks, decodes their lines, and prints "ok" or the number of a stack that differs. The
// registers are those of the ATmega2560's first serial port.
const avrProgram = `#include <string.h>
#include "lwsbt.h"
static const struct { uint16_t lws, len; const char *line; struct lwsbt_stack s; } want[] = {
%s};
static char line[LWSBT_LINE_LEN(LWSBT_BLOB_MAX) + 1];
static unsigned n;
static void gather(void *arg, const char *text, size_t len)
{
	(void)arg;
	for (; len > 0 && n < sizeof line; len--)
		line[n++] = *text++;
}
static const struct lwsbt_out out = { gather, NULL };
static void put(char c)
{
	while (!(*(volatile uint8_t *)0xc0 & 0x20))
		;
	*(volatile uint8_t *)0xc6 = (uint8_t)c;
}
int main(void)
{
	static uint8_t buf[LWSBT_BLOB_MAX];
	static struct lwsbt_stack s;
	unsigned i;
	*(volatile uint8_t *)0xc1 = 8;
	for (i = 0; i < sizeof want / sizeof *want; i++) {
		size_t len = lwsbt_encode(buf, sizeof buf, &want[i].s, want[i].lws);
		n = 0;
		lwsbt_line(&out, buf, len);
		if (n != want[i].len + 1u || memcmp(line, want[i].line, want[i].len) != 0 ||
		    lwsbt_parse_line(buf, sizeof buf, &len, want[i].line, want[i].len, 0) != LWSBT_OK ||
		    lwsbt_decode(&s, buf, len, 32) != LWSBT_OK || s.depth != want[i].s.depth || s.size != want[i].s.size ||
		    memcmp(s.pc, want[i].s.pc, s.depth * sizeof *s.pc) != 0)
			break;
	}
	if (i < sizeof want / sizeof *want) {
		put((char)('0' + i / 10));
		put((char)('0' + i %% 10));
	} else {
		put('o');
		put('k');
	}
	put('\n');
	for (;;)
		;
}
`

// Where int and addresses have 16 bits, as on an AVR, the codec has words of 32 bits, and no heap.
func TestSixteenBits(t *testing.T) {
	need(t, "avr-gcc", "qemu-system-avr")
	r := rand.New(rand.NewPCG(1, 16))
	var table strings.Builder
	for i := range 20 {
		var s codec.Stack
		for range min(i, 12) {
			s.PCs = append(s.PCs, uint64(r.Uint32()>>r.IntN(32)))
			if n := len(s.PCs); n > 1 && r.IntN(2) == 0 {
				s.PCs[n-1] = (s.PCs[r.IntN(n-1)] + uint64(r.IntN(1000))) & 0xffffffff
			}
		}
		s.Size = uint64(r.Uint32() >> r.IntN(32))
		search := []codec.Search{codec.SearchBest, codec.SearchLws}[i%2]
		blob, err := codec.Encoder{Machine: codec.MachineExact32, Search: search}.AppendBlob(nil, &s, nil)
		if err != nil {
			t.Fatal(err)
		}
		line := codec.AppendLine(nil, blob)
		fmt.Fprintf(&table, "\t{ %d, %d, %q, { %du, 0, %d, {", i%2, len(line), line, s.Size, len(s.PCs))
		for n, pc := range s.PCs {
			fmt.Fprintf(&table, " [%d] = %du,", n, pc)
		}
		fmt.Fprintf(&table, " [31] = 0 } } },\n")
	}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "main.c"), filepath.Join(dir, "main.elf")
	if err := os.WriteFile(source, fmt.Appendf(nil, avrProgram, table.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	args := strings.Fields("-mmcu=atmega2560 -std=c99 -Os -Wall -Wextra -Wconversion -pedantic -Werror -Iamalgamation -ffunction-sections -Wl,--gc-sections amalgamation/lwsbt.c -o " + program)
	if out, err := exec.Command("avr-gcc", append(args, source)...).CombinedOutput(); err != nil {
		t.Fatalf("avr-gcc: %v\n%s", err, out)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, "qemu-system-avr", "-machine", "mega2560", "-display", "none", "-serial", "stdio", "-monitor", "none", "-bios", program)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	answer, err := bufio.NewReader(out).ReadString('\n')
	stop() // the program does not end
	cmd.Wait()
	if answer != "ok\n" {
		t.Errorf("the program printed %q, want ok: %v", answer, err)
	}
}
