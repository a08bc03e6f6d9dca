package access

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrExists is the error of Add for a name that the file has.
var ErrExists = errors.New("access: the user exists")

// ErrUnknown is the error of Delete for a name that the file does not have.
var ErrUnknown = errors.New("access: there is no such user")

// Add adds a user to a users file, which it creates if there is none. line is the line of the user:
// see [Parse]. replace replaces the user of this name, if there is one; otherwise that is ErrExists.
// Other lines stay as they are. The file is replaced as a whole, so a reader finds the old or the
// new one; a new file has mode 0600.
func Add(path, line string, replace bool) error {
	table, err := Parse([]byte(line), "user")
	if err != nil {
		return err
	}
	if len(table.users) != 1 || strings.Contains(line, "\n") {
		return errors.New("access: the line does not define one user")
	}
	name := nameOf(line)
	return edit(path, true, func(lines []string) ([]string, error) {
		for i := range lines {
			if nameOf(lines[i]) != name {
				continue
			}
			if !replace {
				return nil, ErrExists
			}
			lines[i] = line
			return lines, nil
		}
		return append(lines, line), nil
	})
}

// Delete deletes a user from a users file. Other lines stay as they are.
func Delete(path, name string) error {
	return edit(path, false, func(lines []string) ([]string, error) {
		for i := range lines {
			if nameOf(lines[i]) == name {
				return append(lines[:i], lines[i+1:]...), nil
			}
		}
		return nil, ErrUnknown
	})
}

// nameOf returns the name of the user that a line defines, or "".
func nameOf(line string) string {
	if words := strings.Fields(line); len(words) > 1 && words[0] == "user" {
		return words[1]
	}
	return ""
}

// edit changes the lines of a valid file to those of another valid file. The new file is written
// beside the old one, under a name that also keeps other edits away.
func edit(path string, create bool, change func(lines []string) ([]string, error)) (err error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	beside := path + ".new"
	file, err := os.OpenFile(beside, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // the operator names the file
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("access: %s exists: another edit is under way, or was cut short; if so, remove the file", beside)
	}
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err == nil {
			err = os.Rename(beside, path)
		}
		if err != nil {
			_ = os.Remove(beside)
		}
	}()
	data, err := edited(path, file, create, change)
	if err != nil {
		return err
	}
	if _, err := file.Write(data); err != nil {
		return err
	}
	return file.Sync()
}

// edited returns the new content for the file beside, which gets the owner of the old file.
func edited(path string, beside *os.File, create bool, change func(lines []string) ([]string, error)) ([]byte, error) {
	old, err := read(path)
	switch {
	case create && errors.Is(err, fs.ErrNotExist):
		old = nil
	case err != nil:
		return nil, err
	default:
		if err := keepOwner(path, beside); err != nil {
			return nil, err
		}
	}
	if _, err := Parse(old, path); err != nil {
		return nil, err
	}
	var lines []string
	if text := strings.TrimSuffix(string(old), "\n"); text != "" {
		lines = strings.Split(text, "\n")
	}
	if lines, err = change(lines); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for _, line := range lines {
		b.WriteString(line + "\n")
	}
	_, err = Parse(b.Bytes(), path)
	return b.Bytes(), err
}
