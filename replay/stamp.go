package replay

import (
	"fmt"
	"time"
)

// stampLength is the length of the time in an access log: 17/May/2015:10:05:03 +0000.
const stampLength = len("17/May/2015:10:05:03 +0000")

// Years that the limiter can keep: it counts nanoseconds within 105 years of 1970.
const (
	firstYear = 1970
	lastYear  = 2073
)

// parseStamp reads the time of an access log into seconds since the Unix epoch.
func parseStamp(text []byte) (second int64, reason string) {
	wrong := func() (int64, string) {
		return 0, fmt.Sprintf("time %q; accepted: day/Mon/year:hh:mm:ss ±hhmm of the years %d to %d",
			clip(string(text), 40), firstYear, lastYear)
	}
	if !punctuated(text) {
		return wrong()
	}
	ok := true
	number := func(from, to, least, most int) int {
		n := 0
		for _, c := range text[from:to] {
			ok = ok && c >= '0' && c <= '9'
			n = n*10 + int(c-'0')
		}
		ok = ok && n >= least && n <= most
		return n
	}
	day, month, year := number(0, 2, 1, 31), monthOf(text[3:6]), number(7, 11, firstYear, lastYear)
	hour, minute, sec := number(12, 14, 0, 23), number(15, 17, 0, 59), number(18, 20, 0, 60) // 60: a leap second
	east := number(22, 24, 0, 23)*3600 + number(24, 26, 0, 59)*60
	if !ok || month == 0 || day > daysIn(month, year) {
		return wrong()
	}
	if text[21] == '-' {
		east = -east
	}
	return daysSinceEpoch(year, month, day)*86400 + int64(hour*3600+minute*60+sec-east), ""
}

// punctuated reports whether all that is neither a number nor a month is right.
func punctuated(text []byte) bool {
	return len(text) == stampLength && text[2] == '/' && text[6] == '/' && text[11] == ':' && text[14] == ':' &&
		text[17] == ':' && text[20] == ' ' && (text[21] == '+' || text[21] == '-')
}

func monthOf(name []byte) int {
	switch string(name) { // no allocation
	case "Jan":
		return 1
	case "Feb":
		return 2
	case "Mar":
		return 3
	case "Apr":
		return 4
	case "May":
		return 5
	case "Jun":
		return 6
	case "Jul":
		return 7
	case "Aug":
		return 8
	case "Sep":
		return 9
	case "Oct":
		return 10
	case "Nov":
		return 11
	case "Dec":
		return 12
	}
	return 0
}

func daysIn(month, year int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// daysSinceEpoch counts days with years that begin in March, so that the leap day is a year's last.
func daysSinceEpoch(year, month, day int) int64 {
	if month < 3 {
		year, month = year-1, month+12
	}
	inYears := year*365 + year/4 - year/100 + year/400
	inMonths := (153*(month-3) + 2) / 5
	const epoch = 1969*365 + 1969/4 - 1969/100 + 1969/400 + 306 // 1 January 1970
	return int64(inYears + inMonths + day - 1 - epoch)
}

// at is the time of a log's second.
func at(second int64) time.Time { return time.Unix(second, 0).UTC() }
