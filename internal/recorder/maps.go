//go:build linux

package recorder

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// mapping is a line of /proc/PID/maps.
type mapping struct {
	start, end, offset uint64
	flags              string // of r, w and x
	device             string
	inode              uint64
	path               string // "" for anonymous memory
}

func (m *mapping) executable() bool { return strings.Contains(m.flags, "x") }

// parseMaps reads the text of /proc/PID/maps. It skips lines of another form.
func parseMaps(text string) []mapping {
	var list []mapping
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		fields := strings.SplitN(line, " ", 6)
		if len(fields) < 5 || len(fields[1]) < 3 {
			continue
		}
		var m mapping
		from, to, _ := strings.Cut(fields[0], "-")
		var errs [4]error
		m.start, errs[0] = strconv.ParseUint(from, 16, 64)
		m.end, errs[1] = strconv.ParseUint(to, 16, 64)
		m.offset, errs[2] = strconv.ParseUint(fields[2], 16, 64)
		m.inode, errs[3] = strconv.ParseUint(fields[4], 10, 64)
		if errs != [4]error{} || m.start >= m.end {
			continue
		}
		m.flags = strings.ReplaceAll(fields[1][:3], "-", "")
		m.device = fields[3]
		if len(fields) == 6 {
			m.path = strings.ReplaceAll(strings.TrimLeft(fields[5], " "), `\012`, "\n")
		}
		list = append(list, m)
	}
	return list
}

// image is what the recording says of an ELF file.
type image struct {
	buildID string // hexadecimal, "" if it has none
	loads   []elf.ProgHeader
}

// relative returns the address, as the file's program headers have it, of what is mapped
// from an offset in the file.
func (i *image) relative(m mapping) (addr uint64, ok bool) {
	page := uint64(os.Getpagesize())
	for _, p := range i.loads {
		// The kernel maps whole pages: a mapping may begin before its segment's data, in the
		// page that the segment before ends in.
		if (p.Flags&elf.PF_X != 0) == m.executable() && m.offset >= p.Off&^(page-1) && m.offset < p.Off+p.Filesz {
			return p.Vaddr - p.Off + m.offset, true
		}
	}
	return 0, false
}

// readImage reads the program headers and the build ID of an ELF file.
func readImage(r io.ReaderAt) (*image, error) {
	f, err := elf.NewFile(headersOnly{r})
	if err != nil {
		return nil, err
	}
	i := new(image)
	for _, p := range f.Progs {
		switch p.Type {
		case elf.PT_LOAD:
			i.loads = append(i.loads, p.ProgHeader)
		case elf.PT_NOTE:
			notes := make([]byte, min(p.Filesz, 1<<16))
			if n, _ := p.ReadAt(notes, 0); i.buildID == "" {
				i.buildID = buildID(notes[:n], f)
			}
		}
	}
	if len(i.loads) == 0 {
		return nil, fmt.Errorf("no segment to load")
	}
	return i, nil
}

// headersOnly hides an ELF file's section headers, which debug/elf would read and check:
// only its program headers are wanted, and damaged section headers must not matter.
type headersOnly struct{ r io.ReaderAt }

func (h headersOnly) ReadAt(p []byte, off int64) (int, error) {
	n, err := h.r.ReadAt(p, off)
	zero := func(from, to int64) { // of the file
		for i := max(from, off); i < min(to, off+int64(n)); i++ {
			p[i-off] = 0
		}
	}
	var class [1]byte
	if _, e := h.r.ReadAt(class[:], elf.EI_CLASS); e == nil && off < 64 {
		if elf.Class(class[0]) == elf.ELFCLASS64 {
			zero(0x28, 0x30) // e_shoff
			zero(0x3c, 0x40) // e_shnum, e_shstrndx
		} else {
			zero(0x20, 0x24)
			zero(0x30, 0x34)
		}
	}
	return n, err
}

// buildID returns the GNU build ID among ELF notes, "" if there is none.
func buildID(notes []byte, f *elf.File) string {
	const gnuBuildID = 3
	for len(notes) >= 12 {
		nameSize, size := f.ByteOrder.Uint32(notes), f.ByteOrder.Uint32(notes[4:])
		kind := f.ByteOrder.Uint32(notes[8:])
		notes = notes[12:]
		name, desc := uint64(nameSize+3)&^3, uint64(size+3)&^3
		if name > uint64(len(notes)) || uint64(size) > uint64(len(notes))-name {
			return ""
		}
		if kind == gnuBuildID && bytes.HasPrefix(notes, []byte("GNU\x00")) && nameSize == 4 {
			return fmt.Sprintf("%x", notes[name:name+uint64(size)])
		}
		notes = notes[min(name+desc, uint64(len(notes))):]
	}
	return ""
}

// openMapped opens the file of a mapping: by its path as the process sees it, if that is
// still the same file, else by the kernel's link to it.
func openMapped(pid int, m mapping) (*os.File, error) {
	path := strings.TrimSuffix(m.path, " (deleted)")
	for _, name := range []string{
		fmt.Sprintf("/proc/%d/root%s", pid, path),
		path,
		fmt.Sprintf("/proc/%d/map_files/%x-%x", pid, m.start, m.end),
	} {
		f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Ino == m.inode {
				return f, nil
			}
		}
		f.Close()
	}
	return nil, fmt.Errorf("%s: no longer the file that the program mapped", path)
}

// readVDSO reads the kernel's module in a process from the process's memory.
func readVDSO(pid int, m mapping) (*image, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text := make([]byte, min(m.end-m.start, 1<<16))
	if _, err := f.ReadAt(text, int64(m.start)); err != nil {
		return nil, err
	}
	return readImage(bytes.NewReader(text))
}
