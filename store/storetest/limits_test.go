package storetest

import (
	"slices"
	"testing"

	"github.com/weirlimit/weir/algorithm"
)

func TestLimitsAreOfEveryAlgorithm(t *testing.T) {
	for name, texts := range map[string][]string{"limits": limits, "slow": slow, "tight": tight, "quick": quick, "history": historyLimits, "pairs": pairs} {
		for _, a := range algorithm.All() {
			if a == algorithm.Calendar && name == "quick" {
				continue // none of its windows is over within a second
			}
			if !slices.ContainsFunc(texts, func(text string) bool {
				return algorithm.MustParseLimit(text).Canonical().Algorithm == a
			}) {
				t.Errorf("%s has none of %s", name, a)
			}
		}
	}
	for _, text := range slices.Concat(traceless, extremes) {
		if _, err := algorithm.ParseLimit(text); err != nil {
			t.Error(err)
		}
	}
}
