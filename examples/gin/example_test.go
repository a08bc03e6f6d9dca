package ginlimit_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/gin-gonic/gin"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	ginlimit "github.com/weirlimit/weir/examples/gin"
	"github.com/weirlimit/weir/httplimit"
)

// The limit for all is around the whole router; failed logins are counted besides, on one route.
func Example() {
	perClient := must(httplimit.New(must(weir.New(weir.MustParseLimit("100/1m"))), httplimit.Options{}))
	logins := must(httplimit.New(must(weir.New(weir.MustParseLimit("2/1h"), weir.WithName("logins"))), httplimit.Options{Charge: admission.Failures}))

	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.Use(ginlimit.Wrap(perClient))
	r.GET("/hello/:name", func(c *gin.Context) { c.String(http.StatusOK, "hello %s", c.Param("name")) })
	r.POST("/login", ginlimit.Wrap(logins), func(c *gin.Context) {
		if c.PostForm("password") != "swordfish" {
			c.AbortWithStatus(http.StatusUnauthorized)
			return
		}
		c.Status(http.StatusNoContent)
	})

	for _, target := range []string{"/login?try=1", "/login?try=2", "/login?try=3"} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest(http.MethodPost, target, nil))
		fmt.Println("POST", target, w.Code)
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/hello/ann", nil))
	fmt.Println("GET /hello/ann", w.Code, w.Body)
	// Output:
	// POST /login?try=1 401
	// POST /login?try=2 401
	// POST /login?try=3 429
	// GET /hello/ann 200 hello ann
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
