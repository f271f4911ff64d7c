// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// ErrAbsent is about a configuration that does not exist.
var ErrAbsent = errors.New("there is no such configuration")

// Origin is where an EncryptionConfiguration is read.
type Origin interface {
	// String names it to people.
	String() string
	// Read returns what is there. The error is ErrAbsent when there is nothing.
	Read(ctx context.Context) ([]byte, error)
	// path is a file that upstream can load content from, once, until release is called.
	path(content []byte) (path string, release func(), err error)
}

// Home is an Origin whose configuration the server makes and changes by itself.
type Home interface {
	Origin
	// Change replaces what is there by what change makes of it, which is called again when others were faster. It gets
	// nil when there is nothing, and changes nothing by returning what it got.
	Change(ctx context.Context, change func(content []byte) ([]byte, error)) error
	// shared tells whether other processes encrypt under the same keys.
	shared() bool
}

// Ensure makes a configuration unless there is one. It makes none when the stores hold rows that are encrypted already:
// a new key would not open them. find returns a description of such a row, or nothing.
func Ensure(ctx context.Context, home Home, find func(ctx context.Context) (string, error)) error {
	if _, err := home.Read(ctx); !errors.Is(err, ErrAbsent) {
		return err
	}
	found, err := find(ctx)
	if err != nil {
		return fmt.Errorf("looking for rows that are sealed: %w", err)
	}
	if found != "" {
		// Another replica may have begun meanwhile. Its row is younger than its key.
		if _, err := home.Read(ctx); !errors.Is(err, ErrAbsent) {
			return err
		}
		return fmt.Errorf("%s is missing, and what is stored cannot be read without it: %s. Put it back, or name "+
			"the configuration under which it was sealed with --encryption-provider-config (encryption.configSecret of the chart)", home, found)
	}
	err = home.Change(ctx, func(content []byte) ([]byte, error) {
		if content != nil {
			return content, nil
		}
		return newConfiguration().encode()
	})
	if err != nil {
		return fmt.Errorf("making %s: %w", home, err)
	}
	return nil
}

// Rotate adds a key to a home and returns its name. It encrypts at once where nobody else encrypts, and otherwise when the
// leader has given every replica the time to load it. A key that waits already is the new one.
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

// edit changes the configuration of a home, unless it is no longer the one with that content.
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
