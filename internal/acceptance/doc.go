// Package acceptance holds the tests of package weir and of the rules that all packages keep.
package acceptance
