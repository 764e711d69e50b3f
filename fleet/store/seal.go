package store

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
)

// sumKey is the key of the checksum of a file in its metadata: the CRC-32C of the file with eight zeros in its place, in
// hexadecimal. DuckDB and other readers check no pages.
const sumKey = "lwsbt.crc32c"

const noSum = "00000000"

// ErrSum is the cause of the error for a file whose checksum is wrong.
var ErrSum = errors.New("the checksum is wrong")

// Sum returns the CRC-32C of parts of a text.
func Sum(parts ...[]byte) (sum uint32) {
	for _, p := range parts {
		sum = crc32.Update(sum, castagnoli, p)
	}
	return sum
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// place returns where the value of a key in the metadata of a file is, -1 if it has no such key. In Thrift, a byte for the type
// and one for the length precede it.
func place(file []byte, key string, size int) int {
	i := bytes.LastIndex(file, []byte(key))
	if i < 0 || i+len(key)+2+size > len(file) {
		return -1
	}
	return i + len(key) + 2
}

// seal writes the checksum into a file.
func seal(file []byte) {
	if i := place(file, sumKey, len(noSum)); i >= 0 {
		copy(file[i:], fmt.Sprintf("%08x", Sum(file)))
	}
}

// Check returns an error if a file is not what was written, or of another schema.
func Check(file []byte) error {
	sum := place(file, sumKey, len(noSum))
	if sum >= 0 && string(file[sum:sum+len(noSum)]) != fmt.Sprintf("%08x", Sum(file[:sum], []byte(noSum), file[sum+len(noSum):])) {
		return ErrSum
	}
	if i := place(file, SchemaKey, len(Schema)); i >= 0 && string(file[i:i+len(Schema)]) != Schema {
		return fmt.Errorf("has schema %q, expected %q: %w", file[i:i+len(Schema)], Schema, ErrSchema)
	}
	if sum < 0 {
		return ErrSum
	}
	return nil
}
