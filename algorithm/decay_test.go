package algorithm

import (
	"math"
	"testing"
)

func TestDecayIsExponential(t *testing.T) {
	for x := 1e-18; x < 690; x *= 1.0003 {
		left, gone := decay(x)
		if want := math.Exp(-x); math.Abs(left-want) > 4e-16*want {
			t.Fatalf("decay(%v) leaves %v, want %v", x, left, want)
		}
		if want := -math.Expm1(-x); math.Abs(gone-want) > 4e-16*want {
			t.Fatalf("decay(%v) takes %v, want %v", x, gone, want)
		}
	}
	for _, x := range []float64{700, 1e9, math.MaxFloat64} {
		if left, gone := decay(x); left != 0 || gone != 1 {
			t.Errorf("decay(%v) is %v, %v; want 0, 1", x, left, gone)
		}
	}
	if left, gone := decay(0); left != 1 || gone != 0 {
		t.Errorf("decay(0) is %v, %v; want 1, 0", left, gone)
	}
}
