package conformance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// The C arrays compile without a warning, and the decoder in C passes the vectors in them.
func TestCArrays(t *testing.T) {
	cmdtest.Need(t, "gcc")
	var text strings.Builder
	if err := builtinSet(t).WriteC(&text); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	header, program := filepath.Join(dir, "vectors.h"), filepath.Join(dir, "vectors")
	if err := os.WriteFile(header, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	const amalgamation = "../device/amalgamation"
	out, err := exec.Command("gcc", "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-I"+dir, "-I"+amalgamation, "example/vectors.c",
		amalgamation+"/lwsbt.c", "-o", program).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	decode := 0
	for _, v := range builtinSet(t).Vectors {
		if v.Has(opDecode) {
			decode++
		}
	}
	out, err = exec.Command(program).CombinedOutput()
	if want := fmt.Sprintf("0 of %d vectors failed\n", decode); err != nil || string(out) != want || decode < 400 {
		t.Errorf("%s, want %s, %v", out, want, err)
	}
}

// An element has what the vector has, of each kind of input and answer.
func TestCElements(t *testing.T) {
	set := parseSet(t, `id: a/encode
clause: BT-SIZE-1
op: encode decode
machine: exact64
in: size=5 pcs=10
bits: 00001. 0. 000101. 10000.
bits: 000011. 101.
want: ok size=5 pcs=10

id: a/header
clause: BT-HEAD-1.1
op: hline
why: a "quoted" remark?
text: "~h#map t=1"
want: head map - t=1

id: a/short
clause: BT-BLOB-2.1
op: decode
hex: 00
want: reject short
`)
	var text strings.Builder
	if err := set.WriteC(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{ .id = "a/encode", .op = "encode", .why = "", .out = { a1, 6 }, .machine = "exact64", .search = "lws", .size = UINT64_C(0x5), .depth = 1, .pcs = a2 },`,
		`{ .id = "a/encode", .op = "decode", .why = "", .word = 64, .in = { a3, 6 }, .size = UINT64_C(0x5), .depth = 1, .pcs = a4 },`,
		`{ .id = "a/header", .op = "hline", .why = "a \042quoted\042 remark\077", .out_words = "map - t=1", .word = 64, .in = { a5, 10 } },`,
		`{ .id = "a/short", .op = "decode", .why = "", .reason = "short", .word = 64, .in = { a6, 1 } },`,
		"static const unsigned char a6[] = {0};\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%s\nhas no %s", text.String()[len(cHead):], want)
		}
	}
}
