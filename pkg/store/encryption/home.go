// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// ErrAbsent is returned if there is no configuration.
var ErrAbsent = errors.New("the configuration does not exist")

// Origin is the source of an EncryptionConfiguration.
type Origin interface {
	// String returns a description for messages.
	String() string
	// Read returns the content. The error is ErrAbsent if there is none.
	Read(ctx context.Context) ([]byte, error)
	// path returns a file from which upstream can load content, once, until release is called.
	path(content []byte) (path string, release func(), err error)
}

// Home is an Origin whose configuration the server generates and changes itself.
type Home interface {
	Origin
	// Change replaces the content with the result of change, which is called again after a concurrent change. change gets
	// nil if there is no content; it changes nothing by returning its argument.
	Change(ctx context.Context, change func(content []byte) ([]byte, error)) error
	// shared reports whether other processes encrypt with the same keys.
	shared() bool
}

// Ensure generates a configuration unless there is one. It returns an error if the stores hold encrypted rows: a new key
// would not decrypt them. find returns a description of such a row, or an empty string.
func Ensure(ctx context.Context, home Home, find func(ctx context.Context) (string, error)) error {
	if _, err := home.Read(ctx); !errors.Is(err, ErrAbsent) {
		return err
	}
	found, err := find(ctx)
	if err != nil {
		return fmt.Errorf("looking for encrypted rows: %w", err)
	}
	if found != "" {
		// Another replica may have started meanwhile and written the row after its key.
		if _, err := home.Read(ctx); !errors.Is(err, ErrAbsent) {
			return err
		}
		return fmt.Errorf("%s is missing, and the stored data cannot be read without it: %s. Restore it, or set --encryption-provider-config "+
			"(encryption.configSecret of the chart) to the configuration with which the data is encrypted", home, found)
	}
	err = home.Change(ctx, func(content []byte) ([]byte, error) {
		if content != nil {
			return content, nil
		}
		return newConfiguration().encode()
	})
	if err != nil {
		return fmt.Errorf("creating %s: %w", home, err)
	}
	return nil
}

// Rotate adds a key to a home and returns its name. It encrypts immediately if no other process encrypts, and otherwise
// once the leader has given every replica time to load it. A key that is already pending is used as the new one.
func Rotate(ctx context.Context, home Home) (string, error) {
	var name string
	err := home.Change(ctx, func(content []byte) ([]byte, error) {
		if content == nil {
			return nil, ErrAbsent
		}
		c, err := parseConfiguration(content)
		if err != nil {
			return nil, err
		}
		place := 0
		if home.shared() {
			if name = c.pending(); name != "" {
				return content, nil
			}
			place = 1
		}
		name = c.add(place)
		return c.encode()
	})
	if err != nil {
		return "", fmt.Errorf("changing %s: %w", home, err)
	}
	return name, nil
}

// edit changes the configuration of a home, unless its content differs from the known one.
func edit(ctx context.Context, home Home, known []byte, change func(*configuration)) error {
	err := home.Change(ctx, func(content []byte) ([]byte, error) {
		if !bytes.Equal(content, known) {
			return content, nil
		}
		c, err := parseConfiguration(content)
		if err != nil {
			return nil, err
		}
		change(c)
		return c.encode()
	})
	if err != nil {
		return fmt.Errorf("changing %s: %w", home, err)
	}
	return nil
}
