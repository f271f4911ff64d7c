// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"fmt"
	"os"
	"time"
)

// holdOfFiles is much longer than it takes until all replicas have new files.
const holdOfFiles = 24 * time.Hour

// Files are certificates that another party issues. All three files change at once, or within some seconds.
type Files struct {
	// Certificate and Key are served. Authority has the certificates that clients trust.
	Certificate, Key, Authority string
	// Name is the name by which clients verify the server.
	Name string
}

var _ Source = Files{}

// String returns the names of the files.
func (f Files) String() string {
	return fmt.Sprintf("files %s, %s and %s", f.Certificate, f.Key, f.Authority)
}

func (f Files) wanted(_ context.Context, now time.Time, known ...*identity) (*identity, error) {
	read, err := f.read(now)
	if err != nil {
		return nil, err
	}
	for _, each := range known {
		if each != nil && each.equal(read) {
			return each, nil
		}
	}
	return read, nil
}

// read reads the files and returns an error if they do not match.
func (f Files) read(now time.Time) (*identity, error) {
	var texts [3][]byte
	for index, path := range []string{f.Certificate, f.Key, f.Authority} {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading the serving certificate: %w", err)
		}
		texts[index] = text
	}
	found, err := newIdentity(texts[0], texts[1], parseBundle(texts[2]))
	if err != nil {
		return nil, fmt.Errorf("%s and %s must be a certificate and its private key in PEM: %w", f.Certificate, f.Key, err)
	}
	// One that has expired may be shown while there is no other, if nothing else is wrong with it.
	if err := found.verify(found.authorities, f.Name, validTime(found.leaf(), now)); err != nil && !isOnlyExpired(err) {
		return nil, fmt.Errorf("%s must be a certificate for %s that an authority in %s has signed: %w", f.Certificate, f.Name, f.Authority, err)
	}
	return found, nil
}

func (f Files) renewed(_ time.Time, shown *identity) (*identity, error) { return shown, nil }

func (f Files) changed(now time.Time, shown *identity) bool {
	read, err := f.read(now)
	return err != nil || !read.equal(shown)
}

func (f Files) hold() time.Duration { return holdOfFiles }
