package server

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/weirlimit/weir/internal/follow"
	"github.com/weirlimit/weir/policy"
)

const (
	maxTokenKey = 4096 // bytes of a file
	keyAccepted = "a file of 32 to 4096 random bytes that not everybody can read, as head -c 32 /dev/urandom > FILE makes after umask 077"
)

// checkTokenKeys checks TokenKeys before their files are read.
func (c Config) checkTokenKeys() error {
	switch {
	case len(c.TokenKeys) == 0:
		return nil
	case c.Policies == "":
		return &ConfigError{"token-key", strconv.Quote(c.TokenKeys[0]), "there are no policies whose tokens it would encrypt", "nothing, or config too"}
	case slices.Contains(c.TokenKeys, ""):
		return &ConfigError{"token-key", `""`, "empty", keyAccepted}
	case len(c.TokenKeys) > policy.MaxTokenKeys:
		return &ConfigError{"token-key", fmt.Sprintf("%d files", len(c.TokenKeys)), "too many", fmt.Sprintf("up to %d files", policy.MaxTokenKeys)}
	}
	return nil
}

// tokenKeys reads the files of keys that encrypt tokens. A key is all bytes of its file.
func (c Config) tokenKeys() (keys [][]byte, err error) {
	for _, path := range c.TokenKeys {
		key, err := readTokenKey(path)
		if err != nil {
			problem := err.Error()
			if file, ok := errors.AsType[*os.PathError](err); ok {
				problem = file.Err.Error()
			}
			return nil, &ConfigError{"token-key", path, problem, keyAccepted}
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func readTokenKey(path string) ([]byte, error) {
	key, err := follow.ReadSecret(path, maxTokenKey)
	if err == nil && len(key) < policy.MinTokenKey {
		err = fmt.Errorf("%d bytes", len(key))
	}
	return key, err
}
