package server

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// SizeAccepted describes the input of ParseSize.
const SizeAccepted = "a number of bytes with B, KiB, MiB, GiB, TiB, kB, MB, GB or TB, such as 512MiB or 2GB"

var sizes = []struct {
	unit  string
	bytes int64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12}, {"b", 1}, {"", 1},
}

// ParseSize returns the bytes of a size such as 512MiB or 2GB: a whole number and a unit, in
// letters of any case. Without a unit the number is in bytes.
func ParseSize(text string) (int64, error) {
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	unit := strings.ToLower(strings.TrimSpace(text[digits:]))
	n, err := strconv.ParseInt(text[:digits], 10, 64)
	if err == nil {
		for _, s := range sizes {
			if s.unit != unit {
				continue
			}
			if n <= math.MaxInt64/s.bytes {
				return n * s.bytes, nil
			}
		}
	}
	return 0, fmt.Errorf("%q is no size; accepted: %s", text, SizeAccepted)
}

// sizeText returns bytes as ParseSize reads them, in the largest unit of which they are a whole
// number.
func sizeText(bytes int64) string {
	text := strconv.FormatInt(bytes, 10)
	for _, s := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if bytes == 0 || bytes%1024 != 0 {
			break
		}
		bytes /= 1024
		text = strconv.FormatInt(bytes, 10) + s
	}
	return text
}
