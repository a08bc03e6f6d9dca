// Package echo5limit is package echolimit for version 5 of echo.
package echo5limit

import "github.com/labstack/echo/v5"

// AnswerErrors answers what a handler returns as an error. It stands right inside the middleware: echo itself would answer when all of it is through.
func AnswerErrors(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c *echo.Context) error {
		if err := next(c); err != nil {
			c.Echo().HTTPErrorHandler(c, err)
		}
		return nil
	}
}
