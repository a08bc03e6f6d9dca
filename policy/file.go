package policy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// errNotRegular is of a pipe or a device, which may never end.
var errNotRegular = errors.New("is no regular file")

// readWithin is read, but waits no longer than ctx for what holds the file.
func readWithin(ctx context.Context, path string) ([]byte, error) {
	return within(ctx, func() ([]byte, error) { return read(path) })
}

// within returns what f returns, or the error of ctx if that ends before.
func within(ctx context.Context, f func() ([]byte, error)) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		data, err := f()
		done <- result{data, err}
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r := <-done:
		return r.data, r.err
	}
}

// read reads a file, and of one that is too large as much as shows that.
func read(path string) ([]byte, error) {
	data, err := readRegular(path)
	if err != nil {
		return nil, fmt.Errorf("weir: policies: %w", err)
	}
	return data, nil
}

func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path) // before it is opened: to open a pipe is to wait for who writes
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() && !info.IsDir() { // reading a directory says by itself what it is
		return nil, &fs.PathError{Op: "read", Path: path, Err: errNotRegular}
	}
	f, err := os.Open(path) //nolint:gosec // the path is the operator's
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}
