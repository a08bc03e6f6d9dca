package engines_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/weirlimit/weir/internal/engines"
)

func Example() {
	const url = "redis://user:secret@127.0.0.1:1/0?timeout=100ms"

	scheme, known := engines.Scheme(url)
	fmt.Println(scheme, known, strings.Contains(engines.Accepted(), scheme))
	fmt.Println(engines.Shown(url), engines.Warning(url) == "", engines.Suggestion("redi://cache"))

	_, err := engines.Open(context.Background(), url, engines.Options{})
	fmt.Println(err != nil, strings.Contains(fmt.Sprint(err), "secret"), engines.Transient(err))
	// Output:
	// redis true true
	// redis://127.0.0.1:1/0 true ; did you mean redis://?
	// true false true
}
