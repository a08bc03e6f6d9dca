package redis

import "strings"

// slot returns the slot of a cluster in which a name is: the CRC-16/XMODEM of what its braces hold.
func slot(name string) int {
	if _, rest, found := strings.Cut(name, "{"); found {
		if tag, _, closed := strings.Cut(rest, "}"); closed && tag != "" {
			name = tag
		}
	}
	var crc uint16
	for i := range len(name) {
		crc ^= uint16(name[i]) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= 0x1021
			}
		}
	}
	return int(crc % 16384)
}
