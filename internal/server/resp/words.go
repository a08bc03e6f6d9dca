package resp

// words splits a line at spaces and appends the words to args, at most limit in all. A word may be in quotes: in double
// quotes with the escapes \n \r \t \b \a \xHH, in single ones with \'. Escapes are undone in place.
// It returns false for quotes that do not end, or that end in the middle of a word.
func words(line []byte, args [][]byte, limit int) ([][]byte, bool) {
	for i := 0; ; {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) {
			return args, true
		}
		if len(args) == limit {
			return args, false
		}
		word, end, ok := word(line, i)
		if !ok {
			return args, false
		}
		args = append(args, word)
		i = end
	}
}

// word reads the word at i, which may begin and end with parts in quotes.
func word(line []byte, i int) (w []byte, end int, ok bool) {
	start, out := i, i // what was read is kept at line[start:out], and out ≤ i
	for i < len(line) && !isSpace(line[i]) {
		if quote := line[i]; quote == '"' || quote == '\'' {
			if out, i, ok = quoted(line, out, i+1, quote); !ok {
				return nil, 0, false
			}
			break
		}
		line[out] = line[i]
		out, i = out+1, i+1
	}
	return line[start:out:out], i, true
}

// quoted moves what is between the quotes to out. After the closing quote the word must end.
func quoted(line []byte, out, i int, quote byte) (outEnd, end int, ok bool) {
	for i < len(line) && line[i] != quote {
		c, size := line[i], 1
		if c == '\\' && i+1 < len(line) {
			c, size = escape(line[i+1:], quote)
		}
		line[out] = c
		out, i = out+1, i+size
	}
	if i == len(line) {
		return 0, 0, false
	}
	i++
	return out, i, i == len(line) || isSpace(line[i])
}

// escape returns what stands for the text after a backslash, and how long it is with the backslash.
func escape(text []byte, quote byte) (c byte, size int) {
	if quote == '\'' {
		if text[0] == '\'' {
			return '\'', 2
		}
		return '\\', 1
	}
	if text[0] == 'x' && len(text) > 2 {
		if hi, lo := hex(text[1]), hex(text[2]); hi < 16 && lo < 16 {
			return hi<<4 | lo, 4
		}
	}
	switch text[0] {
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'b':
		return '\b', 2
	case 'a':
		return '\a', 2
	}
	return text[0], 2
}

// hex returns the value of a hexadecimal digit, and 16 or more for any other byte.
func hex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 16
}

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' || c == 0 }
