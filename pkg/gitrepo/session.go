// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

const (
	// dialTimeout bounds how long one connection may take to open; the context bounds everything.
	dialTimeout = 30 * time.Second
	// maxMessage bounds what is kept of a server's words, in bytes.
	maxMessage = 4 << 10
)

// service is one of the two programs that a Git server runs.
type service string

const (
	uploadPack  service = transport.UploadPackServiceName
	receivePack service = transport.ReceivePackServiceName
)

// session is one conversation with a service: it advertises, then answers at most one request.
type session interface {
	// advertisement reads what the service offers. A repository without references gives an empty one.
	advertisement(ctx context.Context) (*packp.AdvRefs, error)
	// request sends the parts one after the other and returns the answer, which the caller closes.
	request(ctx context.Context, parts ...[]byte) (io.ReadCloser, error)
	// close ends the conversation; closing twice is allowed.
	close()
}

// readAdvertisement decodes an advertisement and judges what came instead of one.
func readAdvertisement(stream io.Reader) (*packp.AdvRefs, error) {
	advertised := packp.NewAdvRefs()
	err := advertised.Decode(stream)
	var unexpected *packp.ErrUnexpectedData
	var line *pktline.ErrorLine
	switch {
	case err == nil, errors.Is(err, packp.ErrEmptyAdvRefs):
		return advertised, nil
	case errors.As(err, &line):
		return nil, refuse(kindOfText(line.Text, Rejected), "the server says: %s", line.Text)
	case errors.As(err, &unexpected):
		text := printable(unexpected.Data)
		return nil, refuse(kindOfText(text, Protocol), "the server does not speak Git's protocol: %s (%q)", unexpected.Msg, text)
	case errors.Is(err, pktline.ErrInvalidPktLen):
		return nil, refuse(Protocol, "the server does not speak Git's protocol: %v", err)
	}
	return nil, err
}

// printable is the beginning of what a server said, as text.
func printable(data []byte) string {
	data = bytes.TrimSpace(data)
	if len(data) > maxMessage {
		data = data[:maxMessage]
	}
	return string(bytes.ToValidUTF8(bytes.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, data), []byte("?")))
}

// message keeps the beginning of what is written to it.
type message struct{ bytes.Buffer }

func (m *message) Write(data []byte) (int, error) {
	if room := maxMessage - m.Len(); room > 0 {
		m.Buffer.Write(data[:min(room, len(data))])
	}
	return len(data), nil
}

func (m *message) text() string { return printable(m.Bytes()) }
