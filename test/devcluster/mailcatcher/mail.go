// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mailcatcher

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	netmail "net/mail"
	"strings"
)

// Mail is a mail with the addresses of its envelope.
type Mail struct {
	// Username is that of the client, if it has authenticated.
	Username string
	// Encrypted reports whether the connection had TLS.
	Encrypted bool
	// UTF8 reports whether the client has asked for SMTPUTF8, which addresses that are not ASCII need.
	UTF8 bool
	From string
	To   []string
	// Content is the header and the body.
	Content []byte
}

// Parsed is the content of a mail. Encoded words and bodies are decoded.
type Parsed struct {
	Header netmail.Header
	// Subject is the decoded subject.
	Subject    string
	Text, HTML string
}

// Parse decodes the content, which must be multipart/alternative with a text and an HTML part, in this order.
func (m Mail) Parse() (Parsed, error) {
	read, err := netmail.ReadMessage(bytes.NewReader(m.Content))
	if err != nil {
		return Parsed{}, fmt.Errorf("read the header: %w", err)
	}
	parsed := Parsed{Header: read.Header}
	if parsed.Subject, err = new(mime.WordDecoder).DecodeHeader(read.Header.Get("Subject")); err != nil {
		return Parsed{}, fmt.Errorf("decode the subject: %w", err)
	}
	kind, parameters, err := mime.ParseMediaType(read.Header.Get("Content-Type"))
	if err != nil {
		return Parsed{}, fmt.Errorf("read the content type: %w", err)
	}
	if kind != "multipart/alternative" {
		return Parsed{}, fmt.Errorf("the content type is %s, want multipart/alternative", kind)
	}
	parts := multipart.NewReader(read.Body, parameters["boundary"])
	if parsed.Text, err = readPart(parts, "text/plain"); err != nil {
		return Parsed{}, err
	}
	if parsed.HTML, err = readPart(parts, "text/html"); err != nil {
		return Parsed{}, err
	}
	if _, err := parts.NextRawPart(); !errors.Is(err, io.EOF) {
		return Parsed{}, errors.Join(errors.New("there is a third part, or the end is missing"), err)
	}
	return parsed, nil
}

// readPart decodes the next part, which must be text of a type, in UTF-8.
func readPart(parts *multipart.Reader, want string) (string, error) {
	part, err := parts.NextRawPart()
	if err != nil {
		return "", fmt.Errorf("read the part %s: %w", want, err)
	}
	kind, parameters, err := mime.ParseMediaType(part.Header.Get("Content-Type"))
	if err != nil {
		return "", fmt.Errorf("read the content type of the part %s: %w", want, err)
	}
	if kind != want || !strings.EqualFold(parameters["charset"], "utf-8") {
		return "", fmt.Errorf("part is %s, %v; want %s in UTF-8", kind, parameters, want)
	}
	if encoding := part.Header.Get("Content-Transfer-Encoding"); encoding != "quoted-printable" {
		return "", fmt.Errorf("encoding is %q, want quoted-printable", encoding)
	}
	content, err := io.ReadAll(quotedprintable.NewReader(part))
	return strings.ReplaceAll(string(content), "\r\n", "\n"), err
}

// String returns what a recipient sees.
func (m Mail) String() string {
	parsed, err := m.Parse()
	if err != nil {
		return fmt.Sprintf("mail that cannot be shown: %v\n%s", err, m.Content)
	}
	return fmt.Sprintf("From:    %s\nTo:      %s\nSubject: %s\n\n%s\n", parsed.Header.Get("From"), strings.Join(m.To, ", "), parsed.Subject,
		strings.TrimSpace(parsed.Text))
}
