package callpath

import (
	"hash/crc32"

	"github.com/lwsbt/lwsbt/internal/crc16"
)

// crc16Of returns the CRC-16/IBM-3740 of text. (BT-PLINE-2)
func crc16Of(text []byte) uint64 { return uint64(crc16.Update(crc16.Init, text)) }

// crc32Of returns the CRC-32/ISO-HDLC of text. (BT-VLINE-2)
func crc32Of(text []byte) uint64 { return uint64(crc32.ChecksumIEEE(text)) }
