package truth

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/lwsbt/lwsbt/heap/core/unwind"
)

// UnmarshalJSON decodes numbers as text, so that addresses stay exact.
func (s *Sample) UnmarshalJSON(b []byte) error {
	type plain Sample
	var raw struct {
		plain
		Extra  [][2]json.RawMessage `json:"extra"`
		Frames [][2]json.RawMessage `json:"frames"`
		VDSO   []json.RawMessage    `json:"vdso"`
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	*s = Sample(raw.plain)
	text := func(m json.RawMessage) string {
		var t string
		if json.Unmarshal(m, &t) == nil {
			return t
		}
		return string(m)
	}
	for _, e := range raw.Extra {
		s.Extra = append(s.Extra, [2]any{text(e[0]), text(e[1])})
	}
	for _, e := range raw.Frames {
		s.Frames = append(s.Frames, [2]any{text(e[0]), text(e[1])})
	}
	for _, e := range raw.VDSO {
		s.VDSO = append(s.VDSO, text(e))
	}
	return nil
}

// Kernel returns the vdso as a module, or nil if there is none.
func (s *Sample) Kernel() *unwind.Module {
	if len(s.VDSO) != 2 {
		return nil
	}
	o, err := unwind.NewObject(bytes.NewReader(decoded(s.VDSO[1])), "[vdso]")
	if err != nil {
		return nil
	}
	return &unwind.Module{Object: o, Bias: number(s.VDSO[0]) - o.Low()}
}

func decoded(v any) []byte {
	b, _ := base64.StdEncoding.DecodeString(fmt.Sprint(v))
	return b
}

// Score counts frames, except the first of each sample, which is given.
type Score struct {
	Samples int
	Crossed int // samples with more than one stack
	Want    int // frames of gdb's backtraces
	Found   int // frames of gdb that were found, in order
	False   int // frames found that gdb does not have
	Frames  int // found
	How     [unwind.HowScan + 1]int
	Wrong   [unwind.HowScan + 1]int // false frames, by How
}

// Recall returns the share of the true frames that were found.
func (s *Score) Recall() float64 { return float64(s.Found) / float64(max(s.Want, 1)) }

// Wrongs returns the share of false frames among those found.
func (s *Score) Wrongs() float64 { return float64(s.False) / float64(max(s.Frames, 1)) }

// String returns the score in one line.
func (s *Score) String() string {
	return fmt.Sprintf("%d stops, %d on an alternate stack, %d of %d frames (%.1f %%), %d false of %d (%.2f %%), how %v, wrong %v",
		s.Samples, s.Crossed, s.Found, s.Want, s.Recall()*100, s.False, s.Frames, s.Wrongs()*100, s.How, s.Wrong)
}

// Add adds the comparison of one backtrace, and reports whether it equals the reference.
func (s *Score) Add(truth []uint64, toMain bool, frames []unwind.Frame, tag uint64) (perfect bool) {
	want := truth[1:]
	var got []uint64
	if len(frames) > 1 {
		for _, f := range frames[1:] {
			got = append(got, f.PC&^tag)
		}
	}
	if toMain && len(want) > 0 { // ignore the callers of main
		for i, pc := range got {
			if pc == want[len(want)-1] {
				got = got[:i+1]
				break
			}
		}
	}
	if toMain && len(want) == 0 {
		got = nil
	}
	s.Samples++
	s.Want += len(want)
	s.Frames += len(got)
	found, k := 0, 0
	for i, pc := range got {
		how := frames[i+1].How
		s.How[how]++
		hit := false
		for j := k; j < len(want); j++ {
			if want[j] == pc {
				hit, k = true, j+1
				break
			}
		}
		if hit {
			found++
		} else {
			s.False++
			s.Wrong[how]++
		}
	}
	s.Found += found
	return found == len(want) && found == len(got)
}
