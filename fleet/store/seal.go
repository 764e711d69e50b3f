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

// place returns where the checksum of a file is: after its key, in Thrift a byte for the type and one for the length. It is
// -1 if there is none.
func place(file []byte) int {
	i := bytes.LastIndex(file, []byte(sumKey))
	if i += len(sumKey) + 2; i < len(sumKey)+2 || i+len(noSum) > len(file) {
		return -1
	}
	return i
}

// seal writes the checksum into a file.
func seal(file []byte) {
	if i := place(file); i >= 0 {
		copy(file[i:], fmt.Sprintf("%08x", Sum(file)))
	}
}

// CheckSum returns an error if the checksum of a file is wrong. Files of earlier versions have none.
func CheckSum(file []byte) error {
	i := place(file)
	if i < 0 {
		return nil
	}
	if string(file[i:i+len(noSum)]) != fmt.Sprintf("%08x", Sum(file[:i], []byte(noSum), file[i+len(noSum):])) {
		return ErrSum
	}
	return nil
}
