package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// docs/btstats.md prints what btstats prints.
func TestDocs(t *testing.T) {
	t.Chdir("../..")
	cmdtest.Docs(t, "docs/btstats.md", "btstats", 6, *update, func(args string) (string, error) {
		var out, errs bytes.Buffer
		if code := run(strings.Fields(args), nil, &out, &errs); code != 0 {
			return "", fmt.Errorf("exit code %d: %s", code, errs.String())
		}
		return out.String(), nil
	})
}
