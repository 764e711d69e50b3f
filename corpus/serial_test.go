package corpus

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/gen"
)

var update = flag.Bool("update", false, "write serial.log and serial.tsv anew")

// serial generates the serial log of an ESP32 that boots, works, crashes and boots again, in the
// form in which a terminal program stores it, and the list of its records.
type serial struct {
	log, list bytes.Buffer
	rng       *rand.ChaCha8
	heap      *gen.Program
	ms        int
}

func (l *serial) below(n int) int { return int(l.rng.Uint64() % uint64(n)) }

// record appends the text of a record, truncated to keep bytes if keep is not negative,
// and lists it: offset, length in characters, state, size, addresses.
func (l *serial) record(state string, keep int) {
	var s codec.Stack
	l.heap.Next(&s)
	blob, err := codec.Encoder{Machine: codec.MachineWrap32}.AppendBlob(nil, &s, nil)
	if err != nil {
		panic(err)
	}
	line := codec.AppendLine(nil, blob)
	if keep >= 0 {
		line = line[:min(keep, len(line)-1)]
	}
	pcs := strings.Trim(fmt.Sprintf("%x", s.PCs), "[]")
	fmt.Fprintf(&l.list, "%d\t%d\t%s\t%d\t%s\n", l.log.Len(), len(line), state, s.Size, pcs)
	l.log.Write(line)
}

func (l *serial) stamp() {
	l.ms += 1 + l.below(40)
	fmt.Fprintf(&l.log, "[%02d:%02d.%03d] ", l.ms/60000, l.ms/1000%60, l.ms%1000)
}

func (l *serial) say(format string, args ...any) {
	l.stamp()
	fmt.Fprintf(&l.log, format+"\r\n", args...)
}

func (l *serial) boot() {
	l.log.WriteString("ets Jul 29 2019 12:21:46\r\n\r\nrst:0x1 (POWERON_RESET),boot:0x13 (SPI_FAST_FLASH_BOOT)\r\n")
	l.log.WriteString("\x00\x00\xf8\xff\x1b[0;32mI (29) boot: ESP-IDF v5.1 2nd stage bootloader\x1b[0m\r\n")
	l.ms = 0
	l.say("\x1b[0;32mI (612) heap: at 3FFB0000 len 00030000 (192 KiB): DRAM\x1b[0m")
	l.say("N: lws_create_context: LWS: 4.4.0, loglevel 1031")
}

func (l *serial) work(rounds int) {
	for range rounds {
		l.stamp()
		switch l.below(16) {
		case 0:
			fmt.Fprintf(&l.log, "\x1b[0;33mW (%d) wifi: rssi -%d ~ weak\x1b[0m", l.ms, 60+l.below(30))
		case 1: // two tasks write at once: the text of one is inside the record of the other
			l.record("cut", 8+l.below(30))
			l.log.WriteString("I: ping 10.0.0.1: ")
			l.record("whole", -1)
		case 2: // the UART lost the end
			l.record("cut", 10+l.below(40))
		case 3:
			l.record("whole", -1)
			l.log.WriteString(" ")
			l.record("whole", -1)
		case 4:
			l.log.WriteString("\x1b[0;36mD: alloc \x1b[1m")
			l.record("whole", -1)
			l.log.WriteString("\x1b[0m")
		case 5:
			l.record("whole", -1)
			fmt.Fprintf(&l.log, ", free %d", 40000+l.below(20000))
		case 6:
			l.log.WriteString("~m#")
		case 7:
			l.log.WriteString("~b#size: 24, 0x400d1234 0x80081abc")
		default:
			l.log.WriteString("N: ")
			l.record("whole", -1)
		}
		l.log.WriteString("\r\n")
	}
}

func makeSerial() (log, list []byte) {
	esp32, _ := gen.ModelByName("esp32")
	l := &serial{rng: rand.NewChaCha8([32]byte{1}), heap: esp32.Program(1)}
	l.list.WriteString("offset\tlength\tstate\tsize\taddresses\n")
	l.boot()
	l.work(120)
	l.stamp()
	l.record("cut", 21)
	l.log.WriteString("Guru Meditation Error: Core  0 panic'ed (LoadProhibited). Exception was unhandled.\r\n")
	l.log.WriteString("Backtrace: 0x400d3c1a:0x3ffb4f20 0x400d1e80:0x3ffb4f40\r\nRebooting...\r\n")
	l.boot()
	l.work(120)
	l.stamp()
	l.record("cut", 17) // the log ends inside a record
	return l.log.Bytes(), l.list.Bytes()
}

// The serial log is the output of its generator; go test ./corpus -update writes it.
func TestSerialLogIsMade(t *testing.T) {
	log, list := makeSerial()
	if *update {
		for name, b := range map[string][]byte{"serial.log": log, "serial.tsv": list} {
			if err := os.WriteFile(name, b, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	if !bytes.Equal(log, File("serial.log")) || !bytes.Equal(list, File("serial.tsv")) {
		t.Error("serial.log or serial.tsv differs from the generated one; go test ./corpus -update writes them")
	}
}
