package query

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/internal/newfile"
)

// Logs writes the log of each device to DEVICE.log in a directory, and returns the number of
// logs. A log contains the same dumps as the rows of Store, without the lines that are lost.
func (f *fleet) Logs(dir string) (int, error) {
	if f.Bases != Fixed || f.Twice > 0 {
		return 0, fmt.Errorf("other addresses, and uploads to two servers, are only for a store")
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return 0, err
	}
	to, err := newfile.OpenDir(dir)
	if err != nil {
		return 0, err
	}
	defer to.Close()
	paths := f.sources()
	for d := range f.Devices {
		if err := f.log(to, d, paths); err != nil {
			return d, err
		}
	}
	return f.Devices, nil
}

// log writes the log of a device. It replaces a file of its name.
func (f *fleet) log(dir *newfile.Dir, device int, paths []source) (err error) {
	name := f.DeviceID(device) + ".log"
	if err := dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := dir.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if e := file.Close(); err == nil {
			err = e
		}
	}()
	w := bufio.NewWriter(file)
	boot := -1
	for _, m := range f.moments(device) {
		if m.boot != boot {
			boot = m.boot
			fmt.Fprintf(w, "~h#boot w=32 build=%s dev=%s fw=%s epoch=%d\n", f.BuildID(device%f.Builds), f.DeviceID(device), f.Firmware(device%f.Builds),
				m.started.Add(f.skew(device)).UnixMicro())
		}
		w.Write(f.appendDump(nil, device, &m, paths))
	}
	return w.Flush()
}

// appendDump appends the text of a dump.
func (f *fleet) appendDump(text []byte, device int, m *simMoment, paths []source) []byte {
	var count, bytes int64
	var lines []byte
	number := uint64(0) // of the lines that the device writes
	for h := range f.heap(device, m, paths) {
		count, bytes = count+h.count, bytes+h.bytes
		if h.arrived {
			lines = appendEntry(lines, number, m, &h, paths)
		}
		number++
	}
	t := f.reported(m.uptime).Microseconds()
	text = fmt.Appendf(text, "~h#begin %d t=%d k=paths n=%d b=%d why=interval\n", m.index, t, count, bytes)
	text = append(text, lines...)
	text = fmt.Appendf(text, "~h#heap t=%d size=%d free=%d\n", t, heapSize, max(0, heapSize-bytes))
	return fmt.Appendf(text, "~h#end %d n=%d b=%d\n", m.index, count, bytes)
}

// appendEntry appends the line of a path, which is the line with a number of the dump.
func appendEntry(text []byte, number uint64, m *simMoment, h *simHeld, paths []source) []byte {
	e := callpath.Entry{Live: uint64(h.count), Bytes: uint64(h.bytes)}
	frames := paths[h.path].frames
	for i := range frames { // the outermost frame is first in a line
		e.Frames = append(e.Frames, callpath.Frame{Value: frames[len(frames)-1-i]})
	}
	w := callpath.Writer{Dump: uint32(m.index), Lines: number}
	text, err := w.Append(text, &e)
	if err != nil {
		panic(err) // no frame is too large
	}
	return w.Flush(text)
}
