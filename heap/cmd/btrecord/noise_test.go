//go:build linux

package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// A recording of a program that writes over the shared memory is right, or its error says so and nothing else.
func TestNoise(t *testing.T) {
	program := linux("noise.c")(t)
	runs := 2
	if cmdtest.Full() {
		runs = 10
	}
	if cmdtest.All() {
		runs = 100
	}
	totals := regexp.MustCompile(`([\d,]+) allocations?, [\d,]+ frees?, peak ([\d,]+) bytes?, ([\d,]+) bytes? in`)
	number := func(s string) int { n, _ := strconv.Atoi(strings.ReplaceAll(s, ",", "")); return n }
	told, right := 0, 0
	for _, bytes := range []int{2, 8, 50} {
		for seed := range runs {
			r := recorded(t, "--", program, fmt.Sprint(bytes), fmt.Sprint(seed*31+1))
			m := totals.FindStringSubmatch(r.errs)
			switch {
			case r.code == 125 && strings.HasPrefix(r.errs, "btrecord: the recording is not complete: the program wrote over shared memory: "):
				told++
			case r.code == 0 && m != nil && number(m[1]) >= 5050 && number(m[2]) < 70_000 && number(m[3]) >= 50_000 && number(m[3]) < 64_000:
				right++
			default:
				t.Errorf("%d bytes, seed %d: exit status %d: %s", bytes, seed*31+1, r.code, r.errs)
			}
		}
	}
	t.Logf("%d runs: %d right, %d reported", 3*runs, right, told)
	if told == 0 {
		t.Error("no run was damaged")
	}
}
