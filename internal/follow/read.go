package follow

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
)

// errNotRegular is the error for a pipe or a device, which may never end.
var errNotRegular = errors.New("is no regular file")

// Read reads a regular file, at most one byte beyond most, so the caller can reject a longer file.
// It waits no longer than ctx for a file system that hangs.
func Read(ctx context.Context, path string, most int64) ([]byte, error) {
	return Within(ctx, func() ([]byte, error) { return ReadRegular(path, most) })
}

// Within returns the result of f, or the error of ctx if that ends before.
func Within(ctx context.Context, f func() ([]byte, error)) ([]byte, error) {
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

// ReadRegular reads a regular file, at most one byte beyond most.
func ReadRegular(path string, most int64) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, most+1))
}

// openRegular opens a regular file or a directory, whose read is an error by itself.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path) // before the open, which could wait for the writer of a pipe
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() && !info.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errNotRegular}
	}
	return os.Open(path) //nolint:gosec // the operator names the file
}
