// Package store keeps the heap dumps of many devices in Parquet files, in a directory.
//
//	Batch ─Put→ files of dumps, facts and paths ─Files→ a query engine
//	                     └─Compact→ fewer files    └─Retain→ none that are too old
//
// Any number of processes may write to a store at the same time. A reader never sees a part of
// a batch; see [Store.Snapshot].
package store

import (
	"errors"
	"reflect"
	"strings"
)

// Schema is the version of the tables. The metadata of every file contains it under SchemaKey.
const (
	Schema    = "2"
	SchemaKey = "lwsbt.schema"
)

// ErrSchema is the cause of the error for a file of another schema.
var ErrSchema = errors.New("another version of btfleet is needed")

// Names of the tables. File names begin with them.
const (
	Dumps  = "dumps"
	Facts  = "facts"
	Paths  = "paths"
	Frames = "frames"

	JudgedPaths   = "judged"
	JudgedDevices = "judged_devices"
)

// Tables are all tables.
var Tables = []string{Dumps, Facts, Paths, Frames, JudgedPaths, JudgedDevices}

// Column is a column of a table.
type Column struct {
	Name string
	Kind reflect.Kind
	Time bool // in µs since 1970
}

// Columns returns the columns of a table, in the order of the fields of its rows.
func Columns(table string) (list []Column) {
	row := map[string]any{Dumps: Dump{}, Facts: Fact{}, Paths: Path{}, Frames: Frame{}, JudgedPaths: Judged{}, JudgedDevices: JudgedDevice{}}[table]
	for _, f := range reflect.VisibleFields(reflect.TypeOf(row)) {
		name, options, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		list = append(list, Column{name, f.Type.Kind(), strings.Contains(options, "timestamp")})
	}
	return list
}

// Dump is one heap dump of a device. Rows are sorted by device, boot and dump.
type Dump struct {
	Build    string  `parquet:"build,dict"`  // build ID of the firmware, "unknown" if it is not known
	FW       string  `parquet:"fw,dict"`     // version of the firmware, as reported by the device
	Device   string  `parquet:"device,dict"` //
	Boot     int64   `parquet:"boot,dict"`   // Unix time in µs when the server received the first upload of the boot; orders the boots of a device
	Dump     int64   `parquet:"dump,dict"`   // index within the boot, from 0, in the order of arrival
	Time     int64   `parquet:"time,timestamp(microsecond)"`
	Uptime   int64   `parquet:"uptime_us"` // since the boot, in µs; -1 if not known
	Received int64   `parquet:"received,timestamp(microsecond)"`
	Bytes    int64   `parquet:"bytes"`     // live
	Count    int64   `parquet:"count"`     // live blocks
	Complete bool    `parquet:"complete"`  // no part of the dump is known to be missing
	Lost     float64 `parquet:"lost,dict"` // fraction of the blocks that is missing, 0 to 1
	Why      string  `parquet:"why,dict"`  // cause of the dump, from its header

	// Sizes that the allocator reported, in bytes; -1 if it reported none. Of several heaps, these are sums, and
	// HeapLargest is the largest free block of any.
	HeapSize    int64 `parquet:"heap_size,dict"`
	HeapFree    int64 `parquet:"heap_free"`
	HeapLargest int64 `parquet:"heap_largest"`
	HeapMinimum int64 `parquet:"heap_minimum"`
	// Heaps is a JSON list of [Heap], "" if the allocator reported fewer than two.
	Heaps string `parquet:"heaps"`
	// Labels are what the upload says of the device, such as model or region. (See package ingest.)
	Labels map[string]string `parquet:"labels"`

	Upload string `parquet:"upload,dict"` // SHA-256 of device and content of the upload, 32 hexadecimal digits
}

// Heap is one of several heaps of a device at a dump.
type Heap struct {
	Name string `json:"name"`
	Size int64  `json:"size"` // bytes
	Free int64  `json:"free"`
}

// Fact holds the live blocks and bytes of one call path in one dump. A path without a fact had none.
// Rows are sorted by device, path, boot and dump.
type Fact struct {
	Build    string  `parquet:"build,dict"`
	Device   string  `parquet:"device,dict"`
	Path     int64   `parquet:"path,dict"` // see [PathID]
	Boot     int64   `parquet:"boot,dict"`
	Dump     int64   `parquet:"dump,dict"`
	Time     int64   `parquet:"time,timestamp(microsecond),dict"`
	Count    int64   `parquet:"count,dict"`
	Bytes    int64   `parquet:"bytes,dict"`
	Complete bool    `parquet:"complete"`
	Lost     float64 `parquet:"lost,dict"`
}

// Path is a call path of a build.
type Path struct {
	Build string `parquet:"build,dict"`
	Path  int64  `parquet:"path"`
	// Addresses holds the return addresses, innermost first: "0x8000123", "code+0x123" if
	// only the code offset is known (SPEC.md, BT-CODE-2), or "module+0x123". The last may be
	// a text in parentheses: the reason why there are no more addresses.
	Addresses []string `parquet:"addresses,list"`
}

// Frame is a function at an address of a build. An address has several frames if
// functions are inlined.
type Frame struct {
	Build    string `parquet:"build,dict"`
	Address  string `parquet:"address"`
	Index    int32  `parquet:"index"` // 0 is the innermost inlined function
	Function string `parquet:"function,dict"`
	File     string `parquet:"file,dict"`
	Line     int32  `parquet:"line"`
	Missing  string `parquet:"missing,dict"` // reason why there is no function or no line, or ""
}

// Unknown is the build ID of dumps whose firmware is not known.
const Unknown = "unknown"

// PathID returns the identifier of a call path within its build: 63 bits of the FNV-1a
// hash of its addresses. It is never negative.
func PathID(addresses []string) int64 {
	h := uint64(0xcbf29ce484222325)
	for _, a := range addresses {
		for i := range len(a) {
			h = (h ^ uint64(a[i])) * 0x100000001b3
		}
		h = (h ^ ' ') * 0x100000001b3
	}
	return int64(h >> 1)
}
