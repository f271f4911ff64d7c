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
	// Content is the whole file. Nil deletes the file; an empty slice is an empty file.
	Content []byte
}

// Signature is the author or committer of a commit, and the time. Characters that Git does not allow are dropped.
type Signature struct {
	Name  string
	Email string
	// When is recorded to the second, with its time zone.
	When time.Time
}

// Commit is a set of changes and the message and identities to commit them with.
type Commit struct {
	Author    Signature
	Committer Signature
	// Message is the whole message, trailers included. A missing final newline is added.
	Message string
	// Changes are applied in order.
	Changes []Change
	// Sign, if set, returns the armored signature of a commit object, as ssh-keygen or gpg would write it.
	Sign func(commit []byte) (string, error)
}

// encode returns the commit object. With a zero parent it is a root commit.
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
	writeSignature(&header, signature)
	return append(header.Bytes(), message...), nil
}

func cleanMessage(message string) string {
	message = strings.ToValidUTF8(strings.ReplaceAll(message, "\x00", ""), "\uFFFD")
	return strings.TrimRight(message, "\n") + "\n"
}

func (s Signature) encode() string {
	name, email := cleanIdentity(s.Name), cleanIdentity(s.Email)
	if name == "" {
		name = "unknown" // Git rejects an identity without a name.
	}
	return fmt.Sprintf("%s <%s> %d %s", name, email, max(s.When.Unix(), 0), s.When.Format("-0700"))
}

// crud has the characters that Git strips from both ends of a name or an address, beside spaces and control characters.
const crud = `.,:;<>"\'`

// cleanIdentity removes characters that would end a name or an address, and strips both ends as Git does.
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

// commitLinks are the hashes that a commit object refers to.
type commitLinks struct {
	tree Hash
	// parent is the first one; zero for a root commit.
	parent Hash
}

// decodeCommit parses a commit object's tree and first parent.
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
