// Package report turns the figures of several rounds into medians, ratios and markdown.
package report

import (
	"math"
	"slices"
)

// Median returns the middle value, the mean of the two middle ones for an even count, and NaN for none. A NaN
// among the values is left out.
func Median(values []float64) float64 {
	v := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	if len(v) == 0 {
		return math.NaN()
	}
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// Ratio returns the median of a[i]/b[i]. The two of a pair were measured in one round, minutes apart at most, so that
// what slows the machine down for a while slows both. It uses as many pairs as there are.
func Ratio(a, b []float64) float64 {
	n := min(len(a), len(b))
	r := make([]float64, n)
	for i := range r {
		r[i] = a[i] / b[i]
	}
	return Median(r)
}
