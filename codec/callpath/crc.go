package callpath

import "hash/crc32"

// crc16Table is the table of the polynomial 0x1021, not reflected. (BT-PLINE-2)
var crc16Table = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			crc = crc<<1 ^ 0x1021*(crc>>15)
		}
		table[i] = crc
	}
	return table
}()

// crc16 returns the CRC-16/IBM-3740 of text. (BT-PLINE-2)
func crc16(text []byte) uint64 {
	crc := uint16(0xffff)
	for _, c := range text {
		crc = crc<<8 ^ crc16Table[byte(crc>>8)^c]
	}
	return uint64(crc)
}

// crc32Of returns the CRC-32/ISO-HDLC of text. (BT-VLINE-2)
func crc32Of(text []byte) uint64 { return uint64(crc32.ChecksumIEEE(text)) }
