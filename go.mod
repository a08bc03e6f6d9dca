module github.com/weirlimit/weir

go 1.26.0

require (
	github.com/alecthomas/kong v1.17.0 // indirect
	github.com/getkin/kin-openapi v0.152.0 // indirect
	github.com/mitchellh/colorstring v0.0.0-20190213212951-d06e56a500db // indirect
	github.com/prometheus/client_golang v1.25.0 // indirect
	github.com/rivo/uniseg v0.4.7 // indirect
	github.com/schollz/progressbar/v3 v3.19.1 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/term v0.44.0 // indirect
	pgregory.net/rapid v1.3.0 // indirect
)
