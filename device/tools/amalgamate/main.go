// Amalgamate makes lwsbt.c and lwsbt.h, which have the whole library in two files:
//
//	go run ./device/tools/amalgamate
//
// It takes the files of device/include, device/src and device/adapters as they are, and puts each header
// where it is first included.
package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// codec and heap are the files of src, in the order in which one should read them. Those of heap need words of the
// machine's own size.
var (
	codec = strings.Fields("choose encode decode line parse head event paths packet device")
	heap  = strings.Fields(`heap trim alloc dump packed paths_head sums profile profile_blocks profile_dump
	capture_fp capture_scan capture_unwind capture_functions capture_ppc capture_s390x capture_xtensa`)
)

// ownWord is the condition of the heap.
const ownWord = "\n#if UINTPTR_MAX == (LWSBT_WORD_BITS == 64 ? UINT64_MAX : UINT32_MAX)\n"

// ports are the capture functions that read prologues, each for a machine. They share capture_prologue.h, which
// is between what each defines before it and what each defines after it.
var ports = strings.Fields("thumb arm aarch64 riscv mips")

// wrap are the files of adapters, with LWSBT_WRAP.
var wrap = []string{"wrap", "begin"}

func main() {
	dir := "device"
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	for name, make := range map[string]func(fs.FS) (string, error){"lwsbt.h": Header, "lwsbt.c": Source} {
		text, err := make(os.DirFS(dir))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "amalgamation", name), []byte(text), 0o644)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "amalgamate: %v\n", err)
			os.Exit(2)
		}
	}
}

const made = "/* Made by `go run ./device/tools/amalgamate` from the files of device/. Do not edit. */\n"

// Header returns lwsbt.h.
func Header(tree fs.FS) (string, error) {
	a := amalgamation{tree: tree, done: map[string]bool{}}
	text := a.file("include/lwsbt.h")
	return made + text, a.err
}

// Source returns lwsbt.c.
func Source(tree fs.FS) (string, error) {
	a := amalgamation{tree: tree, done: map[string]bool{"include/lwsbt.h": true}}
	out := made + "#include \"lwsbt.h\"\n"
	listed := []string{}
	parts := func(names []string) {
		for _, name := range names {
			listed = append(listed, "src/"+name+".c")
			out += a.part("src/" + name + ".c")
		}
	}
	parts(codec)
	out += ownWord
	parts(heap)
	before, after, prologue := "", "", ""
	for _, name := range ports {
		path := "src/capture_" + name + ".c"
		listed = append(listed, path)
		b, p, f := a.port(path)
		before, after, prologue = before+b, after+f, prologue+p
	}
	out += before + "\n#ifdef STEP\n" + prologue + "\n#endif\n" + after
	out += "\n#ifdef LWSBT_WRAP\n"
	for _, name := range wrap {
		out += a.part("adapters/" + name + ".c")
	}
	out += "\n#endif\n\n#elif defined(LWSBT_WRAP)\n#error \"LWSBT_WRAP needs LWSBT_WORD_BITS to be those of an address\"\n#endif\n"
	all, err := fs.Glob(tree, "src/*.c")
	if err != nil {
		return "", err
	}
	slices.Sort(listed)
	if a.err == nil && !slices.Equal(all, listed) {
		a.err = fmt.Errorf("src has %q, expected %q", all, listed)
	}
	return out, a.err
}

type amalgamation struct {
	tree fs.FS
	done map[string]bool // headers
	err  error
}

func (a *amalgamation) read(path string) string {
	text, err := fs.ReadFile(a.tree, path)
	if err != nil && a.err == nil {
		a.err = err
	}
	return string(text)
}

var include = regexp.MustCompile(`(?m)^#include "([^"]+)"\n`)

// file returns a file with its headers in it, each once.
func (a *amalgamation) file(path string) string {
	return a.expand(path, a.read(path))
}

func (a *amalgamation) expand(path, text string) string {
	return include.ReplaceAllStringFunc(text, func(line string) string {
		header := a.find(path, include.FindStringSubmatch(line)[1])
		if a.done[header] {
			return ""
		}
		a.done[header] = true
		return a.part(header)
	})
}

// find returns the path of a header that a file includes: beside it, in src or in include.
func (a *amalgamation) find(path, header string) string {
	for _, dir := range []string{filepath.Dir(path), "src", "include"} {
		if _, err := fs.Stat(a.tree, filepath.Join(dir, header)); err == nil {
			return filepath.Join(dir, header)
		}
	}
	if a.err == nil {
		a.err = fmt.Errorf("%s: no header %s", path, header)
	}
	return header
}

// part is file, with its name over it.
func (a *amalgamation) part(path string) string {
	return "\n/* " + path + " " + strings.Repeat("-", max(3, 90-len(path))) + " */\n\n" + a.file(path)
}

const prologue = "#include \"capture_prologue.h\"\n"

// port returns what a port has before capture_prologue.h and after it, each under the condition of the port, and
// the header, unless an earlier port had it.
func (a *amalgamation) port(path string) (before, header, after string) {
	text := a.read(path)
	condition := regexp.MustCompile(`(?m)^#if .*\n`).FindString(text)
	b, f, found := strings.Cut(text, prologue)
	head, rest, conditional := strings.Cut(b, condition)
	f, ends := strings.CutSuffix(strings.TrimRight(f, "\n"), "#endif")
	if a.err == nil && !(found && conditional && ends) {
		a.err = fmt.Errorf("%s: expected #if, %s and #endif", path, strings.TrimSpace(prologue))
	}
	before = "\n/* " + path + " */\n\n" + a.expand(path, head) + condition + a.expand(path, rest) + "#endif\n"
	header = a.expand(path, prologue)
	after = "\n/* " + path + ", continued */\n\n" + condition + a.expand(path, f) + "#endif\n"
	return before, header, after
}
