package bounds_test

import (
	"fmt"
	"os"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/bounds"
)

func ExampleWrite() {
	row := bounds.Row{Algorithm: "gcra", HalfOpen: "b+q−1 = 5", Closed: "b+q = 6", Mixed: "b+q = 6", Any: "b+⌊L/T⌋", Reaction: []int64{1090, 199, 111}, Words: 1}
	if err := bounds.Write(os.Stdout, []bounds.Row{row}); err != nil {
		panic(err)
	}
	// Output:
	// | algorithm | any [t, t+w) | any [t, t+w] | the same, mixed costs | any [t, t+L] | at 1.1× | at 2× | at 10× | state at 100/1m |
	// |---|---|---|---|---|--:|--:|--:|--:|
	// | gcra | b+q−1 = 5 | b+q = 6 | b+q = 6 | b+⌊L/T⌋ | 1090 | 199 | 111 | 1 word, 8 B |
}

func ExampleWindow() {
	fmt.Println(bounds.Window(algorithm.MustParseLimit("100/1m burst=20")))
	// Output: 119 b+q−1
}

func ExampleWords() {
	// two words for each unit
	fmt.Println(bounds.Words(algorithm.MustParseLimit("sliding-log 100/1m")))
	// Output: 200 <nil>
}
