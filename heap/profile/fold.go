package profile

import (
	_ "embed"
	"regexp"
	"strings"
	"sync"
)

//go:embed fold.txt
var foldList string

// foldable matches the names of functions that allocate for others.
var foldable = sync.OnceValue(func() *regexp.Regexp {
	var list []string
	for line := range strings.Lines(foldList) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			list = append(list, line)
		}
	}
	return regexp.MustCompile("^(?:" + strings.Join(list, "|") + ")$")
})

// startsProgram reports whether a function is below main in every call path of a program for Linux.
func startsProgram(name string) bool {
	return name == "_start" || strings.HasPrefix(name, "__libc_start_")
}

// Allocator reports whether a function allocates for others: malloc and its wrappers,
// operator new, containers of C++ and Rust, interpreters. The name is demangled. The list of
// these functions is fold.txt.
func Allocator(name string) bool {
	s := strings.ReplaceAll(shorten(name), "<…>", "")
	return foldable().MatchString(strings.TrimPrefix(s, "__GI_")) // glibc's names for calls within itself
}
