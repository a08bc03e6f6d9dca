package ginlimit_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	ginlimit "github.com/weirlimit/weir/examples/gin"
	"github.com/weirlimit/weir/httplimit"
)

func ask(e *gin.Engine, path string) int {
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, path, nil))
	return w.Code
}

func engine(t *testing.T, charge func(*http.Request, admission.Response) int64, before ...gin.HandlerFunc) *gin.Engine {
	t.Helper()
	l, err := weir.New(weir.MustParseLimit("40/1h"), weir.WithName("ann"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := httplimit.New(l, httplimit.Options{Charge: charge})
	if err != nil {
		t.Fatal(err)
	}
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.Use(append(before, ginlimit.Wrap(m))...)
	e.GET("/string", func(c *gin.Context) { c.Writer.WriteString(strings.Repeat("a", 41)) })
	e.GET("/panic", func(*gin.Context) { panic("handler") })
	return e
}

func TestStringsAreCharged(t *testing.T) {
	e := engine(t, admission.Size)
	if first, second := ask(e, "/string"), ask(e, "/string"); first != http.StatusOK || second != http.StatusTooManyRequests {
		t.Errorf("statuses %d, %d, want 200, 429", first, second)
	}
}

// Another middleware's writer, as of one that compresses.
type others struct{ gin.ResponseWriter }

// Middleware that comes after may put a writer of its own in place, and leave it there.
func TestAWriterThatIsLeftInPlace(t *testing.T) {
	e := engine(t, admission.Failures)
	g := e.Group("/", func(c *gin.Context) { c.Writer = others{c.Writer} })
	g.GET("/status", func(c *gin.Context) { c.Status(http.StatusUnauthorized) })
	g.GET("/body", func(c *gin.Context) { c.String(http.StatusUnauthorized, "no") })
	for i := range 41 {
		want := http.StatusUnauthorized
		if i == 40 {
			want = http.StatusTooManyRequests
		}
		if got := ask(e, []string{"/status", "/body"}[i%2]); got != want {
			t.Fatalf("request %d: %d, want %d", i, got, want)
		}
	}
}

// A handler before it may write when it is through, and gin.Recovery does.
func TestOutsideTheMiddlewareTheContextIsAsItWas(t *testing.T) {
	for _, path := range []string{"/string", "/panic", "/nowhere"} {
		same := false
		ask(engine(t, admission.Failures, func(c *gin.Context) {
			request, writer := c.Request, c.Writer
			defer func() {
				recover()
				same = c.Request == request && c.Writer == writer
			}()
			c.Next()
		}), path)
		if !same {
			t.Errorf("%s: the context has another request or writer", path)
		}
	}
}

func TestAPanicIsAnsweredByRecovery(t *testing.T) {
	e := engine(t, admission.Failures, gin.CustomRecoveryWithWriter(nil, func(c *gin.Context, _ any) { c.AbortWithStatus(http.StatusTeapot) }))
	for i := range 41 {
		want := http.StatusTeapot
		if i == 40 {
			want = http.StatusTooManyRequests
		}
		if got := ask(e, "/panic"); got != want {
			t.Fatalf("request %d: %d, want %d", i, got, want)
		}
	}
}
