package main

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/conformance"
)

// btheap dumps lists the dumps of each vector, with the sums of their call paths. Values outside of
// dumps may be dumps of their own (BT-REC-3).
func TestDumpsVectors(t *testing.T) {
	set, err := conformance.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, v := range set.Vectors {
		if !v.Has("dumps") || strings.Contains(*v.Text, "~m#") || strings.Contains(*v.Text, "~b#") || strings.Contains(v.Want.Words, ";est=") {
			continue // records count for the sums, too; estimates are rounded for each path, and then for the sum
		}
		lines := strings.Split("\n"+*v.Text, "\n")
		out, errs, code := command("\n"+*v.Text, "dumps", "--json")
		var list struct {
			Dumps []struct {
				Number, Line int
				Count, Bytes uint64
			}
		}
		if err := json.Unmarshal([]byte(out), &list); out != "" && err != nil {
			t.Fatalf("%s: %v, exit code %d, %s", v.ID, err, code, errs)
		}
		var got []string
		for _, d := range list.Dumps {
			if strings.Contains(lines[d.Line-1], "~h#begin") {
				got = append(got, fmt.Sprintf("dump=%d live=%d bytes=%d", d.Number, d.Count, d.Bytes))
			}
		}
		if want := sumsOf(t, v); out == "" {
			if len(want) > 0 && !strings.Contains(errs, "no record") && !strings.Contains(errs, "empty") && !strings.Contains(errs, "none of") &&
				!strings.Contains(errs, "could not be read") {
				t.Errorf("%s: nothing, exit code %d, %s", v.ID, code, errs)
			}
		} else if compared++; !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", v.ID, got, want)
		}
	}
	if compared < 70 {
		t.Errorf("%d vectors were compared", compared)
	}
}

// sumsOf returns the dumps that a vector expects, with the sums of their paths.
func sumsOf(t *testing.T, v *conformance.Vector) (list []string) {
	t.Helper()
	var number string
	var live, bytes uint64
	flush := func() {
		if number != "" {
			list = append(list, fmt.Sprintf("%s live=%d bytes=%d", number, live, bytes))
		}
		live, bytes = 0, 0
	}
	for _, word := range strings.Fields(v.Want.Words) {
		if strings.HasPrefix(word, "dump=") {
			flush()
			number, _, _ = strings.Cut(word, ";")
			continue
		}
		for _, field := range strings.Split(word, ";")[1:] {
			key, text, _ := strings.Cut(field, "=")
			n, err := strconv.ParseUint(text, 10, 64)
			switch key {
			case "live":
				live += n
			case "bytes":
				if bytes += n; bytes < n {
					bytes = math.MaxUint64 // sums end there
				}
			default:
				continue
			}
			if err != nil {
				t.Fatalf("%s: %q", v.ID, word)
			}
		}
	}
	flush()
	return list
}
