package identity

import (
	"fmt"
	"net/http"
	"reflect"
	"strconv"
)

// Context is a value of the request's context: what an earlier handler has found out, such as the user that it let in. It is what the value's String method says,
// or else the value if it is text or an integer; of other types, and of nil, it is nothing. The name is as for [Func], behind "context:"; it does not matter what header has it.
func Context(name string, key any) Source {
	if key == nil || !reflect.TypeOf(key).Comparable() {
		return refused("the key of context:"+fmt.Sprintf("%.100s", name), fmt.Sprintf("%T", key), "what context.WithValue takes")
	}
	return Func("context:"+name, func(r *http.Request) string { return text(r.Context().Value(key)) })
}

// text returns what a value says, if it is text or an integer.
func text(value any) string {
	v := reflect.ValueOf(value)
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return ""
	}
	if s, ok := value.(fmt.Stringer); ok {
		return s.String()
	}
	switch {
	case v.Kind() == reflect.String:
		return v.String()
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10)
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10)
	}
	return ""
}
