package symbol

import (
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
)

// Zero values and nil have defined results.
func TestZeroValues(t *testing.T) {
	var f File
	if frames, err := f.Lookup(nil, 1); len(frames) > 0 || err != nil {
		t.Errorf("Lookup: %v, %v", frames, err)
	}
	if _, _, err := f.Section(".text"); err == nil {
		t.Error("Section: no error")
	}
	if l, err := f.Layout(); len(l.Code) > 0 || err != nil {
		t.Errorf("Layout: %v, %v", l, err)
	}
	list, ok := f.Variables("x")
	if ok || len(list)+len(f.Functions())+len(f.codeBefore(1, 1)) > 0 || f.Executable(1) || !f.FollowsCall(1) || f.CanTellCalls() {
		t.Error("a zero File has something")
	}
	if low, high := f.extent(); low != 0 || high != 0 {
		t.Errorf("Span: %d, %d", low, high)
	}
	f.Close()
	for _, b := range InferBases([]*File{nil, &f}, []ReturnAddr{{PC: 1}}) {
		if b.Sound() {
			t.Errorf("a sound base: %v", b)
		}
	}

	var zero Process
	for _, p := range []*Process{&zero, process(t)} {
		if list := p.Resolve(nil, nil, nil); len(list) > 0 {
			t.Errorf("Resolve: %v", list)
		}
		p.Resolve(nil, &codec.Stack{PCs: []uint64{1}}, nil)
		for _, a := range []Addr{p.Locate(7), p.LocateIn(nil, 7), p.LocateIn(&f, 7)} {
			if a != (Addr{PC: 7}) {
				t.Errorf("%+v, want only the PC", a)
			}
		}
		for _, m := range []*Mapping{nil, {Start: 0, End: 10}} {
			if a := p.LocateMapping(m, 7); a.PC != 7 || a.Missing() == "" {
				t.Errorf("LocateMapping: %+v", a)
			}
		}
		p.Notes()
		p.Close()
	}
}

// Options without a meaning are errors.
func TestConfigErrors(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{Word: 7}, "Word is 7"},
		{Config{Files: []FileSpec{{Path: "x", Load: 9}}}, "Load is 9"},
	} {
		if _, err := NewProcess(c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.config, err, c.want)
		}
	}
}
