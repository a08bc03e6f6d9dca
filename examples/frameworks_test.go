package examples_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	echo4 "github.com/labstack/echo/v4"
	echo5 "github.com/labstack/echo/v5"

	echolimit "github.com/weirlimit/weir/examples/echo"
	echo5limit "github.com/weirlimit/weir/examples/echo5"
	ginlimit "github.com/weirlimit/weir/examples/gin"
)

// A site is what each framework serves:
//
//	GET  /hello/NAME   hello NAME, and the user of the context
//	POST /login        204 with ?password=right, else 401, as the framework says it; route is around it
//	POST /stream       503, which is sent before the body; route is around it
//	POST /hijack       418, from a handler that takes the connection over; route is around it
//	POST /panic        a handler that panics; route is around it
type site struct {
	around, route func(http.Handler) http.Handler
	runs          *atomic.Int64 // of handlers
}

// frameworks are the ways to serve a site.
var frameworks = map[string]func(site) http.Handler{"nethttp": netHTTP, "chi": chiRouter, "gin": ginEngine, "echo": echoV4, "echo5": echoV5}

type userKey struct{}

// asUser is a middleware of net/http that puts a user into the context.
func asUser(name string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, name)))
		})
	}
}

func hello(ctx context.Context, name string) string {
	return fmt.Sprintf("hello %s, %v", name, ctx.Value(userKey{}))
}

// counted counts the runs of what is behind it.
func (s site) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.runs.Add(1)
		next.ServeHTTP(w, r)
	})
}

func login(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("password") != "right" {
		http.Error(w, "wrong password", http.StatusUnauthorized)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func stream(w http.ResponseWriter, _ *http.Request) {
	if http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute)) != nil {
		return
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	http.NewResponseController(w).Flush()
	fmt.Fprint(w, "late")
}

func hijack(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprint(conn, "HTTP/1.1 418 I'm a teapot\r\nConnection: close\r\n\r\n")
}

func panics(http.ResponseWriter, *http.Request) { panic("handler") }

func netHTTP(s site) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /hello/{name}", s.counted(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, hello(r.Context(), r.PathValue("name")))
	})))
	mux.Handle("POST /login", s.route(s.counted(http.HandlerFunc(login))))
	mux.Handle("POST /stream", s.route(s.counted(http.HandlerFunc(stream))))
	mux.Handle("POST /hijack", s.route(s.counted(http.HandlerFunc(hijack))))
	mux.Handle("POST /panic", s.route(s.counted(http.HandlerFunc(panics))))
	return s.around(mux)
}

func chiRouter(s site) http.Handler {
	r := chi.NewRouter()
	r.Use(s.around)
	r.With(s.counted).Get("/hello/{name}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, hello(r.Context(), chi.URLParam(r, "name")))
	})
	r.Group(func(r chi.Router) {
		r.Use(s.route, s.counted)
		r.Post("/login", login)
		r.Post("/stream", stream)
		r.Post("/hijack", hijack)
		r.Post("/panic", panics)
	})
	return r
}

func ginEngine(s site) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.Use(ginlimit.Wrap(s.around))
	count := func(*gin.Context) { s.runs.Add(1) }
	e.GET("/hello/:name", count, func(c *gin.Context) { c.String(http.StatusOK, hello(c.Request.Context(), c.Param("name"))) })
	g := e.Group("/", ginlimit.Wrap(s.route), count)
	g.POST("/login", func(c *gin.Context) {
		if c.Query("password") != "right" {
			c.AbortWithStatus(http.StatusUnauthorized)
			return
		}
		c.Status(http.StatusNoContent)
	})
	g.POST("/stream", func(c *gin.Context) {
		if http.NewResponseController(c.Writer).SetWriteDeadline(time.Now().Add(time.Minute)) != nil {
			return
		}
		c.Status(http.StatusServiceUnavailable)
		c.Writer.Flush()
		c.Writer.WriteString("late")
	})
	g.POST("/hijack", gin.WrapF(hijack))
	g.POST("/panic", func(*gin.Context) { panic("handler") })
	return e
}

func echoV4(s site) http.Handler {
	e := echo4.New()
	e.Use(echo4.WrapMiddleware(s.around), echolimit.AnswerErrors)
	count := echo4.WrapMiddleware(s.counted)
	e.GET("/hello/:name", func(c echo4.Context) error {
		return c.String(http.StatusOK, hello(c.Request().Context(), c.Param("name")))
	}, count)
	route := []echo4.MiddlewareFunc{echo4.WrapMiddleware(s.route), echolimit.AnswerErrors, count}
	e.POST("/login", func(c echo4.Context) error {
		if c.QueryParam("password") != "right" {
			return echo4.ErrUnauthorized
		}
		return c.NoContent(http.StatusNoContent)
	}, route...)
	e.POST("/stream", echo4.WrapHandler(http.HandlerFunc(stream)), route...)
	e.POST("/hijack", echo4.WrapHandler(http.HandlerFunc(hijack)), route...)
	e.POST("/panic", func(echo4.Context) error { panic("handler") }, route...)
	return e
}

func echoV5(s site) http.Handler {
	e := echo5.New()
	e.Use(echo5.WrapMiddleware(s.around), echo5limit.AnswerErrors)
	count := echo5.WrapMiddleware(s.counted)
	e.GET("/hello/:name", func(c *echo5.Context) error {
		return c.String(http.StatusOK, hello(c.Request().Context(), c.Param("name")))
	}, count)
	route := []echo5.MiddlewareFunc{echo5.WrapMiddleware(s.route), echo5limit.AnswerErrors, count}
	e.POST("/login", func(c *echo5.Context) error {
		if c.QueryParam("password") != "right" {
			return echo5.ErrUnauthorized
		}
		return c.NoContent(http.StatusNoContent)
	}, route...)
	e.POST("/stream", echo5.WrapHandler(http.HandlerFunc(stream)), route...)
	e.POST("/hijack", echo5.WrapHandler(http.HandlerFunc(hijack)), route...)
	e.POST("/panic", func(*echo5.Context) error { panic("handler") }, route...)
	return e
}
