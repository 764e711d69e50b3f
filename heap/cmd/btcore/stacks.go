package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/heap/core"
	"github.com/lwsbt/lwsbt/heap/core/unwind"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/symbol"
)

// stacksOptions are the flags of btcore stacks.
type stacksOptions struct {
	thread   int
	noTables bool
	noScan   bool
	max      int
}

// stacksCommand returns btcore stacks.
func stacksCommand() *cobra.Command {
	var in input
	var o stacksOptions
	c := &cobra.Command{
		Use:   "stacks [flags] [CORE]",
		Short: "print the call stack of each thread",
		Long: `
stacks prints the call stack of each thread of a core file or crash dump, and of
each task of FreeRTOS, ThreadX, NuttX, RT-Thread or Zephyr. For the RAM of a
device, the registers of the processor are in a file (--regs). It uses unwind
tables if the program has them; otherwise it reads the code of each function,
to find how far the function lowered the stack pointer. The second column has
the method by which a frame was found. A frame found by "scan" is a guess: a
word of the stack is the address after a call.`,
		Example: `
btcore stacks core -e app.elf
btcore stacks --ram 0x20000000=ram.bin --regs regs.txt -e fw.elf
                                     regs.txt: "info registers" of gdb or qemu`,
	}
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	in.frameFlags(f)
	f.IntVar(&o.thread, "thread", 0, "print only the thread with this `ID`")
	f.BoolVar(&o.noTables, "no-tables", false, "do not use unwind tables")
	f.BoolVar(&o.noScan, "no-scan", false, "do not guess frames: end the stack instead")
	f.IntVar(&o.max, "max-frames", 256, "print at most `N` frames of a thread")
	cli.ExitCodes(c, `0 as expected, 1 a file is missing or a stack ends in a guess,
2 usage, unreadable input or no thread in it, 3 something outside failed.`)
	return in.command(c, "Stacks", f, func(c *cobra.Command) error { return o.run(c, &in) })
}

// stackThread is a thread to unwind.
type stackThread struct {
	title string
	regs  unwind.Regs
}

func (o *stacksOptions) run(c *cobra.Command, in *input) error {
	if o.max < 1 {
		return cli.BadArgsf("--max-frames %d: expected at least 1", o.max)
	}
	if err := in.addRegs(); err != nil {
		return err
	}
	in.joinTasks()
	threads, err := o.threads(in)
	if err != nil {
		in.warn(c)
		return err
	}
	p := stackPrinter{in: in, files: map[*unwind.Module]*symbol.File{}}
	defer p.close()
	p.load()
	p.u.NoTables, p.u.NoScan, p.u.MaxFrames = o.noTables, o.noScan, o.max
	err = in.write(c, func(w io.Writer) error {
		for i, t := range threads {
			if i > 0 {
				fmt.Fprintln(w)
			}
			if err := p.print(w, t); err != nil {
				return err
			}
		}
		return nil
	})
	if p.u.Exhausted {
		in.note("the stacks exceed the limit on work: the last ones end early")
	}
	if why := p.demangler.Why(); why != "" {
		in.note("%s", why)
	}
	in.warn(c)
	if err == nil && (p.guessed || len(in.notes) > 0 || len(in.Notes()) > 0) {
		return cli.Exit(cli.Short)
	}
	return err
}

// threads returns the threads that the flags select.
func (o *stacksOptions) threads(in *input) ([]stackThread, error) {
	var list []stackThread
	for i := range in.Threads {
		t := &in.Threads[i]
		if o.thread != 0 && t.ID != o.thread {
			continue
		}
		title := threadTitle(t)
		if i == 0 && in.regs != "" {
			title = "thread of " + cli.Printable(in.regs)
			if t.Name != "" {
				title += ", task " + cli.Printable(t.Name)
			}
		}
		list = append(list, stackThread{title: title, regs: threadRegs(&in.Image, t)})
	}
	switch {
	case len(list) > 0:
		return list, nil
	case o.thread != 0 && len(in.Threads) > 0:
		return nil, cli.Usagef("--thread %d: not among the image's %d threads", o.thread, len(in.Threads))
	}
	for _, note := range in.Notes() {
		if strings.Contains(note, ": cut: ") {
			return nil, cli.Usagef("%s: its registers are missing", note)
		}
	}
	return nil, cli.Usagef("no registers in this image; --regs FILE gives those of a thread")
}

// maxID is above the largest number of a thread of Linux. RTOS tasks have addresses instead.
const maxID = 1 << 22

func threadTitle(t *core.Thread) string {
	title := fmt.Sprintf("thread %d", t.ID)
	if t.ID > maxID {
		title = fmt.Sprintf("thread %#x", t.ID)
	}
	if t.Name != "" {
		title += " " + cli.Printable(t.Name)
	}
	switch {
	case t.Signal != 0:
		title += fmt.Sprintf(", signal %d", t.Signal)
	case t.Crashed:
		title += ", crashed"
	case t.State != "":
		title += ", " + t.State
	}
	return title
}

// threadRegs returns a thread's registers for unwinding.
func threadRegs(m *core.Image, t *core.Thread) unwind.Regs {
	r := unwind.Regs{PC: t.PC}
	for n, v := range t.Regs {
		r.Set(n, v)
	}
	if m.Machine == elf.EM_ARM && t.Thumb() {
		r.PC |= 1
	}
	return r
}

// stackPrinter unwinds threads and prints them.
type stackPrinter struct {
	in      *input
	u       unwind.Unwinder
	files   map[*unwind.Module]*symbol.File
	guessed bool

	demangler symbol.Demangler
}

// vdsoSize is the most bytes read of the kernel's object (vDSO).
const vdsoSize = 64 << 10

// load opens the files of the program, and the kernel's object (vDSO), which is only in
// memory.
func (p *stackPrinter) load() {
	p.u.Memory = p.in
	for f := range p.in.loaded {
		o, err := unwind.Open(f.path)
		if err != nil {
			p.in.note("%v", err)
			continue
		}
		m := &unwind.Module{Object: o, Bias: f.bias}
		p.u.Modules = append(p.u.Modules, m)
		if s, err := symbol.Open(f.path, symbol.DebugDirs()); err == nil {
			p.files[m] = s
		}
	}
	const atSysinfoEHDR = 33
	if at := p.in.Auxv[atSysinfoEHDR]; at != 0 {
		b := make([]byte, vdsoSize)
		b = b[:p.in.Read(b, at)]
		if o, err := unwind.NewObject(bytes.NewReader(b), "[vdso]"); err == nil && o.Machine == p.in.Machine {
			p.u.Modules = append(p.u.Modules, &unwind.Module{Object: o, Bias: at - o.Low()})
		}
	}
}

func (p *stackPrinter) close() {
	for _, m := range p.u.Modules {
		m.Close()
	}
	for _, f := range p.files {
		f.Close()
	}
}

// print prints the stack of a thread.
func (p *stackPrinter) print(w io.Writer, t stackThread) error {
	in := p.in
	if _, err := fmt.Fprintln(w, t.title); err != nil {
		return err
	}
	frames := p.u.Walk(in.Machine, in.class(), in.ByteOrder(), t.regs)
	p.explainEnd(t.title, frames)
	for i := range frames {
		f := &frames[i]
		how := f.How.String()
		if f.How == unwind.HowScan {
			how += "?"
			p.guessed = true
		}
		name, place := p.name(f)
		pc := fmt.Sprintf("0x%0*x", in.PointerSize()*3/2, f.PC)
		for j := range name {
			if j > 0 {
				pc = fmt.Sprintf("%*s", len(pc), "inlined")
				how = ""
			}
			if _, err := io.WriteString(w, frame(fmt.Sprintf("  %s  %-13s ", pc, how), name[j], place[j])); err != nil {
				return err
			}
		}
	}
	return nil
}

// zephyrFill is what a new stack of Zephyr has below its entry function, which has no caller.
const zephyrFill = 0xaaaaaaaa

// explainEnd adds a note if a stack ends early: where it goes on, and why it cannot be followed there.
func (p *stackPrinter) explainEnd(title string, frames []unwind.Frame) {
	last := &frames[len(frames)-1]
	at := p.u.Beyond
	if at == 0 && last.Module == nil && last.PC != 0 {
		at = last.PC
	}
	switch m := p.in.MapAt(at); {
	case last.Trampoline || p.exception(last.PC) || p.secure(at):
	case at == 0 || at == 1 || p.in.fit(at|3) == p.in.fit(^uint64(0)) || at == zephyrFill: // 0, -1 and Zephyr's fill end a stack
	case m != nil && m.File != "":
		p.in.note("%s: the stack goes on at %#x in %s, which %s", title, at, m.File, p.unread(m.File))
	case m != nil && m.Exec:
		p.in.note("%s: the stack goes on at %#x, in code that is in no file: the program made it while it ran", title, at)
	case p.u.Beyond != 0 && m == nil && len(p.in.files) > 0:
		p.in.note("%s: the stack goes on at %#x, which is in no file that was read: another, such as that of a ROM, is given by -e", title, at)
	case len(p.in.files) == 0:
		p.in.note("%s: no file of the program was read: give it by -e", title)
	case len(frames) == 1:
		p.in.note("%s: there is no code at its address, %#x, in the files that were read", title, at)
	}
	if p.exception(last.PC) {
		p.in.note("%s: an exception interrupted a task, whose stack pointer (psp) is not known: its stack is not printed", title)
	}
	if len(frames) == 1 && p.in.Read(make([]byte, 1), last.SP) == 0 {
		p.in.note("%s: its stack, at %#x, is not in the image", title, last.SP)
	}
}

// exception reports whether an address is that to which an exception handler of a Cortex-M returns: the task's stack is
// in another register.
func (p *stackPrinter) exception(pc uint64) bool {
	return p.in.Machine == elf.EM_ARM && pc&0xffffff82 == 0xffffff80 && pc&4 != 0
}

// secure reports whether pc is FNC_RETURN: the secure state has called the function.
func (p *stackPrinter) secure(pc uint64) bool {
	return p.in.Machine == elf.EM_ARM && pc&^1 == 0xfefffffe
}

// unread says why there is no code at an address of a file.
func (p *stackPrinter) unread(file string) string {
	for _, f := range p.in.files {
		if filepath.Base(f.path) == filepath.Base(file) {
			return "was read, but has no code there"
		}
	}
	return "was not read: give it by -e"
}

// name returns the functions and lines of a frame, the innermost function first.
func (p *stackPrinter) name(f *unwind.Frame) (names, places []string) {
	if f.Module == nil {
		return []string{"??"}, []string{p.where(f.PC)}
	}
	pc := p.in.fit(f.Lookup() - f.Module.Bias)
	if s := p.files[f.Module]; s != nil {
		list, _ := s.Lookup(nil, pc)
		if start, ok := f.Module.Start(pc); ok && len(list) == 1 && list[0].Line == 0 {
			// A symbol without size seems to cover the functions without symbols behind it.
			if before, _ := s.Lookup(nil, start-1); len(before) == 1 && before[0] == list[0] {
				list = nil
			}
		}
		if why := s.SplitNote(); why != "" {
			p.in.note("%s: %s", f.Module.Path, why)
		}
		for _, x := range list {
			name, place := cli.Printable(p.demangler.Demangle(x.Func)), ""
			if name == "" {
				name = "??"
			}
			if x.File != "" && x.Line > 0 {
				place = fmt.Sprintf("%s:%d", p.in.place(x.File), x.Line)
			}
			names, places = append(names, name), append(places, place)
		}
	}
	if f.Trampoline && (len(names) != 1 || !strings.Contains(names[0], "restore") && !strings.Contains(names[0], "sigreturn")) {
		return []string{"<signal handler called>"}, []string{""} // the symbol before it is another function's
	}
	if names == nil {
		return []string{"??"}, []string{fmt.Sprintf("(in %s+%#x)", p.in.place(f.Module.Path), pc)}
	}
	return names, places
}

// where describes an address that is in none of the files read.
func (p *stackPrinter) where(pc uint64) string {
	if m := p.in.MapAt(pc); m != nil && m.File != "" {
		why, _, _ := strings.Cut(p.unread(m.File), ":")
		return fmt.Sprintf("(in %s, which %s)", p.in.place(m.File), why)
	}
	return "(in no file)"
}
