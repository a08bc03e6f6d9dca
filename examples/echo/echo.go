// Package echolimit lets middleware that charges by the answer see the answers that echo makes of errors. Copy it. Middleware without Charge needs echo.WrapMiddleware alone.
package echolimit

import "github.com/labstack/echo/v4"

// AnswerErrors answers what a handler returns as an error. It stands right inside the middleware: echo itself would answer when all of it is through.
func AnswerErrors(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := next(c); err != nil {
			c.Error(err)
		}
		return nil
	}
}
