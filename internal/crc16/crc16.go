// Package crc16 computes the CRC-16/IBM-3740: of the polynomial 0x1021, not reflected, that begins with 0xffff.
package crc16

// Init is the checksum of no bytes.
const Init = 0xffff

var table = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			crc = crc<<1 ^ 0x1021*(crc>>15)
		}
		table[i] = crc
	}
	return table
}()

// Update returns the checksum of the bytes before and of b.
func Update(crc uint16, b []byte) uint16 {
	for _, c := range b {
		crc = crc<<8 ^ table[byte(crc>>8)^c]
	}
	return crc
}
