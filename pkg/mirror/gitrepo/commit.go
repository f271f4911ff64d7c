// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Change is the new content of one file.
type Change struct {
	// Path is relative to the repository, with slashes.
	Path string
	// Content is the whole file; nil deletes it, an empty slice is an empty file.
	Content []byte
}

// Signature names who made or recorded a commit, and when. Characters that Git cannot hold in a name are dropped.
type Signature struct {
	Name  string
	Email string
	// When is kept to the second, with its time zone.
	When time.Time
}

// Commit is a set of changes to be recorded as one.
type Commit struct {
	Author    Signature
	Committer Signature
	// Message is the whole message, trailers included; a final newline is added where there is none.
	Message string
	// Changes are applied in order.
	Changes []Change
	// Sign, if set, returns an armored signature of the commit object it is given, as ssh-keygen or gpg would make it.
	Sign func(commit []byte) (string, error)
}

// encode returns the commit object. A zero parent makes a root commit.
func (c *Commit) encode(tree, parent Hash) ([]byte, error) {
	var header bytes.Buffer
	fmt.Fprintf(&header, "tree %s\n", tree)
	if !parent.IsZero() {
		fmt.Fprintf(&header, "parent %s\n", parent)
	}
	fmt.Fprintf(&header, "author %s\ncommitter %s\n", c.Author.encode(), c.Committer.encode())
	message := "\n" + cleanMessage(c.Message)
	if c.Sign == nil {
		return append(header.Bytes(), message...), nil
	}
	signature, err := c.Sign(append(bytes.Clone(header.Bytes()), message...))
	if err != nil {
		return nil, fmt.Errorf("sign the commit: %w", err)
	}
	// A header goes on over lines that begin with a space.
	signature = strings.ReplaceAll(strings.TrimRight(signature, "\n"), "\n", "\n ")
	fmt.Fprintf(&header, "gpgsig %s\n", signature)
	return append(header.Bytes(), message...), nil
}

func cleanMessage(message string) string {
	message = strings.ToValidUTF8(strings.ReplaceAll(message, "\x00", ""), "\uFFFD")
	return strings.TrimRight(message, "\n") + "\n"
}

func (s Signature) encode() string {
	name, email := cleanIdentity(s.Name), cleanIdentity(s.Email)
	if name == "" {
		name = "unknown" // Git refuses an identity without a name.
	}
	return fmt.Sprintf("%s <%s> %d %s", name, email, max(s.When.Unix(), 0), s.When.Format("-0700"))
}

// crud is what Git strips from the ends of a name or an address, beside spaces and control characters.
const crud = `.,:;<>"\'`

// cleanIdentity drops what would end a name or an address early, and from the ends what Git would.
func cleanIdentity(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '<' || r == '>' {
			return -1
		}
		return r
	}, text)
	return strings.Trim(text, crud+" ")
}

// commitLinks is what is read of other people's commits.
type commitLinks struct {
	tree Hash
	// parent is the first one; zero for a root commit.
	parent Hash
}

// decodeCommit reads a commit object's tree and first parent.
func decodeCommit(content []byte) (commitLinks, error) {
	var links commitLinks
	tree, rest, _ := bytes.Cut(content, []byte("\n"))
	text, found := bytes.CutPrefix(tree, []byte("tree "))
	if !found || !parseHash(text, &links.tree) {
		return commitLinks{}, errors.New("malformed commit object: no tree")
	}
	parent, _, _ := bytes.Cut(rest, []byte("\n"))
	if text, found = bytes.CutPrefix(parent, []byte("parent ")); found && !parseHash(text, &links.parent) {
		return commitLinks{}, fmt.Errorf("malformed commit object: parent %q", text)
	}
	return links, nil
}

func parseHash(text []byte, hash *Hash) bool {
	if len(text) != hex.EncodedLen(hashSize) {
		return false
	}
	_, err := hex.Decode(hash[:], text)
	return err == nil
}
