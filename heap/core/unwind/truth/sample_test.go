package truth

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/lwsbt/lwsbt/heap/core/unwind"
)

//go:embed truth.py
var script string

// Sample is one stop of a program: the data that an image would contain, and gdb's backtrace.
type Sample struct {
	PC     uint64            `json:"pc"`
	Thumb  bool              `json:"thumb"`
	Regs   map[string]uint64 `json:"regs"` // by DWARF number
	SP     uint64            `json:"sp"`
	Stack  []byte            `json:"stack"`  // from SP on
	Extra  [][2]any          `json:"extra"`  // addresses and bytes of code in no file, and of other stacks
	Stacks int               `json:"stacks"` // number of stacks in Extra
	Frames [][2]any          `json:"frames"`
	VDSO   []any             `json:"vdso"` // address and bytes of the vdso, empty if there is none
	Maps   string            `json:"maps"`

	extra []part
}

// part is a range of memory.
type part struct {
	addr uint64
	data []byte
}

// Truth returns the addresses of gdb's frames, up to main if gdb found it.
func (s *Sample) Truth() (list []uint64, main bool) {
	for _, f := range s.Frames {
		list = append(list, uint64(number(f[0])))
		if f[1] == "main" {
			return list, true
		}
	}
	return list, false
}

func number(v any) uint64 {
	n, _ := strconv.ParseUint(fmt.Sprint(v), 10, 64)
	return n
}

// Read implements [unwind.Memory].
func (s *Sample) Read(b []byte, addr uint64) int {
	if addr >= s.SP && addr-s.SP < uint64(len(s.Stack)) {
		return copy(b, s.Stack[addr-s.SP:])
	}
	if s.extra == nil {
		for _, e := range s.Extra {
			s.extra = append(s.extra, part{number(e[0]), decoded(e[1])})
		}
	}
	for _, p := range s.extra {
		if addr >= p.addr && addr-p.addr < uint64(len(p.data)) {
			return copy(b, p.data[addr-p.addr:])
		}
	}
	return 0
}

// Registers returns the registers for an Unwinder.
func (s *Sample) Registers() unwind.Regs {
	var r unwind.Regs
	for n, v := range s.Regs {
		i, _ := strconv.Atoi(n)
		r.Set(i, v)
	}
	r.PC = s.PC
	if s.Thumb {
		r.PC |= 1
	}
	return r
}

// Options holds the options of one series of stops.
type Options struct {
	Dir     string
	Samples int
	Seconds int
	Seed    int
	Libs    string   // LD_LIBRARY_PATH of the program
	Args    []string // of the program
	Moments bool     // at random moments, natively; else at random instructions
	Keep    string   // file for the samples, "" to leave none
	Moment  float64  // longest time between two stops, in seconds
}

// Stops runs a program under gdb and returns its state at each stop.
func (m *Machine) Stops(path string, o Options) ([]Sample, error) {
	py, out := o.Dir+"/truth.py", fmt.Sprintf("%s/samples.%d", o.Dir, time.Now().UnixNano())
	if err := os.WriteFile(py, []byte(script), 0o644); err != nil {
		return nil, err
	}
	defer os.Remove(out)
	regs, _ := json.Marshal(m.Regs)
	word := "4"
	if m.Class == 2 {
		word = "8"
	}
	mode := "break"
	if o.Moments {
		mode = "signal"
	}
	env := append(os.Environ(), "TRUTH_OUT="+out, "TRUTH_SAMPLES="+strconv.Itoa(o.Samples), "TRUTH_REGS="+string(regs),
		"TRUTH_SP="+m.SP, "TRUTH_WORD="+word, "TRUTH_MODE="+mode, "TRUTH_SEED="+strconv.Itoa(o.Seed),
		"TRUTH_SECONDS="+strconv.Itoa(max(o.Seconds, 10)))
	if o.Libs != "" {
		env = append(env, "TRUTH_LIBS="+o.Libs)
	}
	if o.Moment > 0 {
		env = append(env, fmt.Sprintf("TRUTH_MOMENT=%g", o.Moment))
	}
	if !o.Moments {
		r, err := ranges(path)
		if err != nil {
			return nil, err
		}
		text, _ := json.Marshal(r)
		env = append(env, "TRUTH_RANGES="+string(text))
	}
	if m.Machine == 40 {
		env = append(env, "TRUTH_FLAGS=cpsr")
	}
	if m.Qemu != "" {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		q := exec.Command(m.Qemu, "-g", strconv.Itoa(port), path)
		if m.CPU != "" {
			q.Env = append(os.Environ(), "QEMU_CPU="+m.CPU)
		}
		if err := q.Start(); err != nil {
			return nil, err
		}
		defer func() { q.Process.Kill(); q.Wait() }()
		env = append(env, "TRUTH_PORT="+strconv.Itoa(port))
	}
	words, err := json.Marshal(o.Args)
	if err != nil {
		return nil, err
	}
	env = append(env, "TRUTH_ARGS="+string(words))
	// gdb would wait forever for instructions that are never reached: end gdb, and use the
	// samples so far.
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(max(o.Seconds, 10)+5)*time.Second)
	defer cancel()
	gdb := exec.CommandContext(ctx, debugger(), "-q", "-nx", "-batch", "-x", py, path)
	gdb.WaitDelay = time.Second
	endWithChildren(gdb)
	gdb.Env = env
	said, err := gdb.CombinedOutput()
	samples, rerr := readSamples(out)
	if o.Keep != "" && len(samples) > 0 {
		os.Rename(out, o.Keep)
	}
	if len(samples) == 0 {
		return nil, fmt.Errorf("gdb gave no samples: %v, %v: %.2000s", err, rerr, said)
	}
	return samples, nil
}

func debugger() string {
	if p, err := exec.LookPath("gdb-multiarch"); err == nil {
		return p
	}
	return "gdb"
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func readSamples(path string) (list []Sample, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		var s Sample
		if json.Unmarshal(sc.Bytes(), &s) != nil {
			break // gdb was killed while writing this line
		}
		list = append(list, s)
	}
	return list, sc.Err()
}
