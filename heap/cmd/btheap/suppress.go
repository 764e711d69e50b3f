package main

import (
	_ "embed"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// defaultSuppressions are pools that grow once and are never freed.
//
//go:embed suppressions.txt
var defaultSuppressions string

// readSuppressions returns an expression for the call paths that files in the syntax of
// LeakSanitizer name, with the default ones or without; nil if there is none.
func readSuppressions(files []string, defaults bool) (*regexp.Regexp, error) {
	var list []string
	if defaults {
		more, err := parseSuppressions(defaultSuppressions, "the defaults")
		if err != nil {
			return nil, err
		}
		list = more
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("--suppressions %w", err)
		}
		more, err := parseSuppressions(string(text), path)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	if len(list) == 0 {
		return nil, nil
	}
	return regexp.Compile(strings.Join(list, "|"))
}

// parseSuppressions reads lines "leak:PATTERN". A pattern matches a part of the name of a
// function, source file or module; * matches any characters, ^ and $ the beginning and the
// end. Lines that begin with # are comments.
func parseSuppressions(text, name string) (list []string, err error) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		pattern, ok := strings.CutPrefix(line, "leak:")
		if !ok || pattern == "" {
			return nil, fmt.Errorf("%s:%d: %q, expected leak:PATTERN", name, n, line)
		}
		pattern = strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*")
		if strings.HasPrefix(pattern, `\^`) {
			pattern = pattern[1:]
		}
		if before, ok := strings.CutSuffix(pattern, `\$`); ok {
			pattern = before + "$"
		}
		list = append(list, pattern)
	}
	return list, nil
}
