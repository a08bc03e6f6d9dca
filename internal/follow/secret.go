package follow

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
)

// ReadSecret is ReadRegular for a file that holds secrets: a file that everybody can read or write
// is an error, and so is one of more than most bytes.
func ReadSecret(path string, most int64) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	refuse := func(problem string) error {
		return &fs.PathError{Op: "read", Path: path, Err: errors.New(problem)}
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errNotRegular}
	}
	// where modes do not show access
	if mode := info.Mode().Perm(); mode&0o007 != 0 && runtime.GOOS != "windows" {
		return nil, refuse(fmt.Sprintf("mode %04o lets everybody read or write it", mode))
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(data)) > most:
		return nil, refuse(fmt.Sprintf("more than %d bytes", most))
	}
	return data, nil
}
