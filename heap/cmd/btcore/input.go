package main

import (
	"debug/elf"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lwsbt/lwsbt/heap/core"
	"github.com/lwsbt/lwsbt/heap/core/unwind"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/symbol"
	"github.com/lwsbt/lwsbt/symbol/sysroot"
)

// input is the input of every subcommand: an image and the ELF files of its program.
type input struct {
	core    string // "" if there is only RAM
	ram     []string
	elf     []string
	sysroot string
	regs    string // file with the registers of a thread, for RAM
	output  string

	basenames bool // of source files

	core.Image
	files []elfFile
	notes []string
}

// elfFile is an ELF file of the program, and its load address.
type elfFile struct {
	path    string
	bias    uint64
	placed  bool // bias is known
	buildID string
	own     bool // named by the user
	program *symbol.File
}

// open returns the file without its debug information, or nil: the error is reported where names
// are needed.
func (f *elfFile) open() *symbol.File {
	if f.program == nil {
		f.program, _ = symbol.Open(f.path, nil)
	}
	return f.program
}

// command completes subcommand c: it adds the flags in own and those of the input,
// loads the input and calls run.
func (in *input) command(c *cobra.Command, group string, own *pflag.FlagSet, run func(*cobra.Command) error) *cobra.Command {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.StringArrayVarP(&in.elf, "exe", "e", nil, "ELF `FILE` of the program; FILE@0xADDR if loaded there")
	f.StringArrayVar(&in.ram, "ram", nil, "`0xADDR=FILE` is raw memory from 0xADDR; FILE alone is Intel HEX or S-records")
	f.StringVar(&in.regs, "regs", "", "with --ram, read the registers of a thread from `FILE`, as gdb or qemu print them")
	f.StringVar(&in.sysroot, "sysroot", "", "look for files that a core file names below `DIR`")
	cli.AddFlags(c, "Input", f)
	own.StringVarP(&in.output, "output", "o", "-", "write to `FILE`")
	cli.AddFlags(c, group, own)
	c.RunE = func(c *cobra.Command, args []string) error {
		defer in.close()
		return in.Guard(func() error {
			if err := in.load(args); err != nil {
				return err
			}
			return run(c)
		})
	}
	return c
}

func (in *input) close() {
	for i := range in.files {
		if f := in.files[i].program; f != nil {
			f.Close()
		}
	}
	in.Close()
}

// write writes the output of a subcommand.
func (in *input) write(c *cobra.Command, write func(io.Writer) error) error {
	return cli.WriteOutput(in.output, in.paths(), c.OutOrStdout(), write)
}

// readRegs reads the file of --regs.
func (in *input) readRegs() (regs unwind.Regs, err error) {
	f, err := os.Open(in.regs)
	if err != nil {
		return regs, err
	}
	defer f.Close()
	if in.Machine == elf.EM_NONE {
		return regs, cli.Usagef("--regs: the machine is not known: name the program by -e")
	}
	if regs, err = unwind.ReadRegs(f, in.Machine, in.class()); err != nil {
		return regs, cli.Usagef("%s: %w", in.regs, err)
	}
	return regs, nil
}

// fit returns an address modulo the size of the address space.
func (in *input) fit(addr uint64) uint64 {
	if in.Word == 32 {
		return uint64(uint32(addr))
	}
	return addr
}

// class returns the ELF class of the image.
func (in *input) class() elf.Class {
	if in.Word == 64 {
		return elf.ELFCLASS64
	}
	return elf.ELFCLASS32
}

// load reads the image that the arguments and flags name.
func (in *input) load(args []string) error {
	if len(args) > 1 {
		return cli.BadArgsf("%d core files, expected one", len(args))
	}
	if len(args) == 1 && args[0] == "" {
		return cli.BadArgsf("the name of the core file is empty")
	}
	if len(args) == 0 && len(in.ram) == 0 {
		return cli.BadArgsf("no image: expected a core file, or --ram")
	}
	for _, a := range args {
		in.core = a
		if err := in.AddFile(a); err != nil {
			return err
		}
	}
	for _, r := range in.ram {
		if err := in.addRAM(r); err != nil {
			return err
		}
	}
	for _, e := range in.elf {
		if err := in.addELF(e); err != nil {
			return err
		}
	}
	in.addModules()
	return nil
}

// paths returns the files that are read; none of them may be the output.
func (in *input) paths() []string {
	list := []string{in.core, in.regs}
	for _, r := range in.ram {
		path := r
		if _, after, ok := strings.Cut(r, "="); ok {
			path = after
		}
		list = append(list, path)
	}
	for _, f := range in.files {
		list = append(list, f.path)
	}
	return list
}

// addRAM adds the memory that an argument of --ram names.
func (in *input) addRAM(arg string) error {
	at, path, ok := strings.Cut(arg, "=")
	if !ok {
		return in.AddFile(arg)
	}
	addr, err := strconv.ParseUint(at, 0, 64)
	if err != nil || path == "" {
		return cli.BadArgsf("--ram %q: expected 0xADDR=FILE", arg)
	}
	return in.AddRAM(addr, path)
}

// addELF adds the file that an argument of -e names. Unless the argument gives a load
// address, the address is that of a file in the image with the same build-id or name.
func (in *input) addELF(arg string) error {
	f := elfFile{path: arg, own: true}
	if i := strings.LastIndex(arg, "@0x"); i > 0 {
		base, err := strconv.ParseUint(arg[i+1:], 0, 64)
		if err != nil {
			return cli.BadArgsf("-e %q: expected FILE@0xBASE", arg)
		}
		f.path, f.bias, f.placed = arg[:i], base, true
	}
	if err := in.Describe(f.path); err != nil {
		return err
	}
	about, err := core.ReadELF(f.path)
	if err != nil {
		return err
	}
	f.buildID = about.BuildID
	if f.placed { // the given address is that of its first segment
		f.bias -= about.Low
	}
	for _, m := range in.Mapped() {
		same := about.BuildID != "" && about.BuildID == m.BuildID
		if !f.placed && (same || m.BuildID == "" && filepath.Base(m.Path) == filepath.Base(f.path)) {
			f.bias, f.placed = biasOf(&m, about), true
		}
		if !same && m.BuildID != "" && about.BuildID != "" && filepath.Base(m.Path) == filepath.Base(f.path) {
			in.note("%s is not the %s that ran: build-id %s, in the image %s", f.path, m.Path, about.BuildID, m.BuildID)
		}
	}
	if entry := in.Auxv[9]; !f.placed && about.PIE && entry != 0 { // AT_ENTRY
		if bias := entry - about.Entry; bias&0xfff == 0 {
			f.bias, f.placed = bias, true
		}
	}
	if !f.placed && !about.PIE {
		f.placed = true // a fixed address
	}
	in.files = append(in.files, f)
	if !f.placed {
		in.note("%s: the image does not tell where it was loaded: give -e %s@0xBASE", f.path, f.path)
		return nil
	}
	return in.AddELF(f.path, f.bias)
}

// biasOf returns the bias of a module by its file: if its header is not in the image, the module begins with the first
// segment of the file.
func biasOf(m *core.Module, about core.ELFInfo) uint64 {
	switch {
	case m.Known:
		return m.Bias
	case about.PIE:
		return m.Bias - about.Low&^0xfff
	}
	return 0
}

// addModules adds the files that the core file names, if they exist here and have the
// build-id in the image. Without a matching build-id, a core file cannot make btcore
// open a file.
func (in *input) addModules() {
	for _, m := range in.Modules() {
		if m.BuildID == "" || !filepath.IsAbs(m.Path) {
			continue
		}
		if slices.ContainsFunc(in.files, func(f elfFile) bool { return f.buildID == m.BuildID }) {
			continue
		}
		path, err := sysroot.Path(in.sysroot, m.Path)
		if err != nil {
			continue
		}
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		about, err := core.ReadELF(path)
		if err != nil || about.BuildID != m.BuildID {
			continue
		}
		bias := biasOf(&m, about)
		if err := in.AddELF(path, bias); err != nil {
			in.note("%v", err)
			continue
		}
		in.files = append(in.files, elfFile{path: path, bias: bias, placed: true, buildID: m.BuildID})
	}
}

// loaded yields the files whose load address is known.
func (in *input) loaded(yield func(*elfFile) bool) {
	for i := range in.files {
		if f := &in.files[i]; f.placed && !yield(f) {
			return
		}
	}
}

func (in *input) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(in.notes, text) {
		in.notes = append(in.notes, text)
	}
}

// warn prints the notes on data that was not accepted or not found.
func (in *input) warn(c *cobra.Command) {
	for _, n := range slices.Concat(in.About, in.Notes(), in.notes) {
		say(c, n)
	}
}

// say prints a note.
func say(c *cobra.Command, text string) {
	fmt.Fprintf(c.ErrOrStderr(), "btcore: %s\n", cli.Printable(text))
}
