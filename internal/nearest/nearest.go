// Package nearest finds the likely name for a misspelt text.
package nearest

// maxText bounds the texts, in bytes.
const maxText = 128

// Of returns the name with the fewest changes or swaps of letters from text; "" if more than a
// third of the letters change.
func Of(text string, names []string) string {
	best, least := "", len(text)/3+1
	if len(text) > maxText {
		return ""
	}
	for _, name := range names {
		if d := distance(text, name); d <= least && (best == "" || d < least) {
			best, least = name, d
		}
	}
	return best
}

// distance is the number of letters to insert, remove, change or swap with the next, to make a of b.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			d := last[j]
			if a[i] != b[j] {
				d++
			}
			d = min(d, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d = min(d, before[j-1]+1)
			}
			row[j+1] = d
		}
	}
	return row[len(b)]
}
