//go:build linux

package record

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Config is the configuration of a [Recorder].
type Config struct {
	Events    bool   // record each event
	Addresses bool   // dumps have the address and size of each block
	AtPeak    bool   // write a dump of the heap when it was largest
	Children  bool   // also record processes that the program starts
	Sample    uint64 // mean distance of samples in bytes; 0 records every allocation
	StartOff  bool   // record nothing until a request On

	// Target is the program, if it is known: its code may need rules.
	Target *Target

	// File is the memory to use, a memfd that can be sealed. If it is nil, New makes one.
	File *os.File

	// Slots is the number of rings, and Words the size of a ring in words of 8 bytes. 0
	// means 4,096 rings of 32,768 words; on 32-bit machines, or if the address space is
	// limited (RLIMIT_AS), 256 rings. Only rings that a thread uses take memory.
	Slots, Words int
}

// headerBytes is the place of the header, a page.
const headerBytes = 4096

// memory is the memory shared with the programs. It is a memfd sealed against shrinking, so
// that reading it never faults.
type memory struct {
	file  *os.File
	bytes []byte
	*header
	slots   []slot
	areas   []byte // of all slots
	rules   rules
	seen    seen
	stride  int    // bytes of an area
	words   uint32 // of a ring
	clock   clock
	unwatch func()
	bed     unsafe.Pointer // asleep, for wake
}

// newMemory creates the memory.
func newMemory(c Config) (*memory, error) {
	slots, words := cmp.Or(c.Slots, 4096), cmp.Or(c.Words, 32768)
	if c.Slots == 0 && (narrow || limit(unix.RLIMIT_AS) < wideSpace) {
		slots = 256 // of 320 KB of addresses each
	}
	up := func(n int) int { return (n + 65535) &^ 65535 }
	areaAt, area := up(headerBytes+slots*ringSlot), up(8*(words+ringSlack))
	rulesAt := areaAt + slots*area
	m := &memory{file: c.File, stride: area, words: uint32(words), clock: newClock()}
	if err := m.create(rulesAt + ringRules); err != nil {
		return nil, fmt.Errorf("cannot create %d bytes of shared memory: %w", rulesAt+ringRules, sizeLimit(err))
	}
	m.areas = m.bytes[areaAt:rulesAt]
	m.rules = newRules(m.bytes[rulesAt:])
	m.header = (*header)(unsafe.Pointer(&m.bytes[0]))
	m.bed = unsafe.Pointer(&m.asleep)
	m.slots = unsafe.Slice((*slot)(unsafe.Pointer(&m.bytes[headerBytes])), slots)
	h := m.header
	copy(h.magic[:], ringMagic)
	h.version = ringVersion
	h.slots, h.words = uint32(slots), uint32(words)
	h.slotAt, h.areaAt, h.area, h.rulesAt = headerBytes, uint64(areaAt), uint64(area), uint64(rulesAt)
	h.sample = c.Sample
	h.recorder = uint32(os.Getpid())
	if c.Children {
		h.children = 1
	}
	h.clock = m.clock.kind
	m.setRecording(!c.StartOff)
	m.unwatch = m.guard()
	copy(m.seen.constants[:], m.constants())
	m.seen.alive = m.alive.Load()
	return m, nil
}

// With less address space than minSpace, Go cannot start all threads. From wideSpace on,
// 4,096 rings have room in it.
const minSpace, wideSpace uint64 = 2 << 30, 8 << 30

// narrow is whether this is a 32-bit machine.
const narrow = unsafe.Sizeof(uintptr(0)) == 4

// CheckLimits returns an error if the process has too little address space to record. Then it
// may abort as soon as it starts a thread.
func CheckLimits() error {
	if n := limit(unix.RLIMIT_AS); n < minSpace && !narrow {
		return fail(NotRecorded, "the address space is limited to %d bytes (ulimit -v), expected at least %d", n, minSpace)
	}
	return nil
}

// limit returns a limit of the process (getrlimit(2)), in bytes.
func limit(which int) uint64 {
	var l unix.Rlimit
	if unix.Getrlimit(which, &l) != nil {
		return math.MaxUint64
	}
	return l.Cur
}

// sizeLimit adds the limit of files to an error.
func sizeLimit(err error) error {
	if errors.Is(err, unix.EFBIG) {
		return fmt.Errorf("%w: files are limited to %d bytes (ulimit -f)", err, limit(unix.RLIMIT_FSIZE))
	}
	return err
}

// create creates the file, if there is none, and maps it.
func (m *memory) create(size int) (err error) {
	if m.file == nil {
		fd, err := unix.MemfdCreate(fmt.Sprintf("%s%d", memoryName, os.Getpid()), unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		if err != nil {
			return err
		}
		m.file = os.NewFile(uintptr(fd), "shared memory")
	}
	defer func() {
		if err != nil {
			m.file.Close()
		}
	}()
	fd := m.file.Fd()
	if err := m.file.Truncate(int64(size)); err != nil {
		return err
	}
	if _, err := unix.FcntlInt(fd, unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		return fmt.Errorf("cannot seal it: %w", err)
	}
	m.bytes, err = unix.Mmap(int(fd), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_NORESERVE)
	return err
}

// path returns the path at which the program opens the memory.
func (m *memory) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), m.file.Fd()) }

// close lets the programs go on without being recorded.
func (m *memory) close() {
	m.mode.Store(0)
	m.unwatch()
	unix.Munmap(m.bytes)
	m.file.Close()
}

// release frees the memory of the first rings, which processes keep mapped. They may
// still write to a ring, but find no record in it.
func (m *memory) release(rings int) {
	for i := range m.slots[:rings] {
		at := int64(m.areaAt) + int64(i*m.stride)
		unix.Fallocate(int(m.file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, at, int64(m.stride))
	}
}

func (m *memory) setRecording(on bool) {
	mode := uint32(0)
	if on {
		mode |= modeAllocs | modeFrees
	}
	m.seen.mode = mode
	m.mode.Store(mode)
}

// ring returns the words of a slot's ring, with the slack. It does not read the position
// from the header, which the program can change.
func (m *memory) ring(i int) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(&m.areas[i*m.stride])), int(m.words)+ringSlack)
}

// sleep waits until a program wakes the recorder, but not longer than d.
func (m *memory) sleep(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&m.asleep)), futexWait, 1, uintptr(unsafe.Pointer(&t)), 0, 0)
}

// wake ends a sleep. It does not access the memory, which may be closed: to take the address of
// m.asleep here would read a byte of it, as Go checks for nil.
func (m *memory) wake() { futexWakeOne(m.bed) }

const (
	futexWait = 0 // between processes: without FUTEX_PRIVATE_FLAG
	futexWake = 1
)

func futexWakeOne(p unsafe.Pointer) {
	unix.Syscall(unix.SYS_FUTEX, uintptr(p), futexWake, 1)
}

// clock converts stamps to times.
type clock struct {
	kind  uint32
	bits  uint // of a stamp
	start time.Time
	now   uint64  // µs since the start, at the last measurement
	base  uint64  // the stamp at the start, of clockCycles
	scale float64 // µs per cycle
}

const stampMask = 1<<ringStampBits - 1

// newClock returns the clock of this machine. It is the cycle counter if the kernel's clock
// uses it, because the counter is then the same on all processors.
func newClock() clock {
	c := clock{kind: clockCount, bits: 32, start: time.Now()}
	if haveCycles && kernelUsesCycles() {
		c.kind, c.bits, c.base = clockCycles, ringStampBits, cycles()&stampMask
	}
	return c
}

// measure sets now and updates the rate of the clock, which becomes more exact over time.
func (c *clock) measure() {
	since := time.Since(c.start)
	c.now = uint64(since.Microseconds())
	if c.kind == clockCycles {
		c.scale = float64(since) / 1000 / float64((cycles()-c.base)&stampMask)
	}
}

func kernelUsesCycles() bool {
	text, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	name := strings.TrimSpace(string(text))
	return err == nil && (name == "tsc" || name == "arch_sys_counter") || name == "kvm-clock" && stableCycles()
}

// stableCycles reports whether the cycle counter has a constant rate in all states. kvm-clock
// then uses it, too.
func stableCycles() bool {
	text, err := os.ReadFile("/proc/cpuinfo")
	return err == nil && strings.Contains(string(text), " constant_tsc ") && strings.Contains(string(text), " nonstop_tsc ")
}

// before reports whether one stamp is before another.
func (c *clock) before(a, b uint64) bool { return c.distance(a, b) < 0 }

// distance returns a − b for stamps that differ by less than half their range.
func (c *clock) distance(a, b uint64) int64 {
	return int64((a-b)<<(64-c.bits)) >> (64 - c.bits)
}

// micros returns the time of a stamp in µs since the start of the clock.
func (c *clock) micros(stamp uint64) uint64 {
	if c.kind == clockCount {
		return c.now
	}
	return uint64(max(0, float64(c.distance(stamp, c.base))*c.scale))
}

// now returns the current stamp.
func (m *memory) now() uint64 {
	if m.clock.kind == clockCount {
		return uint64(m.count.Load())
	}
	return cycles() & stampMask
}
