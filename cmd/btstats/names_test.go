package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
	"github.com/lwsbt/lwsbt/internal/process"
	"github.com/lwsbt/lwsbt/symbol"
)

// Each boot has the names of its own build, whatever the order of the files. An address that is in different functions of
// two builds has both names; where no file has the build, it has none, and the reason is told.
func TestNamesOfBoots(t *testing.T) {
	cmdtest.Need(t, "gcc")
	dir := t.TempDir()
	functions := [2]string{"int alpha(int a) { return a * 3 + 1; }\n", "int gamma(int a) { return a * 3 + 1; }\n"}
	var paths, builds [2]string
	addr := uint64(0)
	for i := range paths {
		source := functions[i] + functions[1-i] + "int main(void) { return alpha(1) + gamma(2); }\n"
		name := filepath.Join(dir, "fw"+string(rune('1'+i)))
		if err := os.WriteFile(name+".c", []byte(source), 0o644); err != nil {
			t.Fatal(err)
		}
		args := strings.Fields("-g -O0 -no-pie -fno-toplevel-reorder -nostdlib -static -Wl,--build-id,-e,main -o " + name + " " + name + ".c")
		if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		f, err := symbol.Open(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		paths[i], builds[i] = name, f.BuildID
		_, addr, err = f.Section(".text")
		f.Close()
		if err != nil || builds[i] == "" {
			t.Fatalf("%s has no .text or build ID: %v", name, err)
		}
	}
	for _, c := range []struct {
		files, boots []int
		want, wrong  string
	}{
		{[]int{0, 1}, []int{0}, "alpha", ""},
		{[]int{1, 0}, []int{0}, "alpha", ""},
		{[]int{0, 1}, []int{1}, "gamma", ""},
		{[]int{1, 0}, []int{0, 1}, "alpha or gamma", ""},
		{[]int{1}, []int{0}, "", "build " + builds[0][:12] + " ran; "},
	} {
		config := symbol.Config{Check: true}
		for _, i := range c.files {
			config.Files = append(config.Files, symbol.FileSpec{Path: paths[i]})
		}
		p, err := process.New(config)
		if err != nil {
			t.Fatal(err)
		}
		n := names{process: p, named: true, of: map[address]string{}, waiting: map[address]bool{}, seen: map[symbol.ReturnAddr]int{}}
		for _, i := range c.boots {
			n.begin(&codec.Header{Verb: codec.VerbBoot, Keys: []codec.HeaderKey{{Key: "build", Value: builds[i]}}})
			if err := n.record(&recording.Item{Stack: &codec.Stack{Size: 1, PCs: []uint64{addr + 8}}}); err != nil {
				t.Fatal(err)
			}
			n.settle()
		}
		if got := n.of[address{addr + 8, false}]; got != c.want || !strings.HasPrefix(strings.Join(n.wrong, "; "), c.wrong) || (c.wrong == "") != (len(n.wrong) == 0) {
			t.Errorf("files %v, boots %v: %q, want %q; %q", c.files, c.boots, got, c.want, n.wrong)
		}
		p.Close()
	}
}
