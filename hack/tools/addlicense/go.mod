module synchub.dev/hack/tools/addlicense

go 1.26.0

require github.com/google/addlicense v1.1.1

require (
	github.com/bmatcuk/doublestar/v4 v4.0.2 // indirect
	golang.org/x/sync v0.0.0-20190911185100-cd5d95a43a6e // indirect
)
