// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
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
	// advertisement reads what the service offers, and where one reference is; the others are read over. A repository
	// without references gives an empty one.
	advertisement(ctx context.Context, reference string) (*packp.AdvRefs, error)
	// request sends the parts one after the other and returns the answer, which the caller closes.
	request(ctx context.Context, parts ...[]byte) (io.ReadCloser, error)
	// close ends the conversation; closing twice is allowed.
	close()
}

// readAdvertisement decodes an advertisement as far as it is of one reference, and returns an error for what is none.
func readAdvertisement(stream io.Reader, reference string) (*packp.AdvRefs, error) {
	advertised := packp.NewAdvRefs()
	err := advertised.Decode(&advertisementFilter{
		packets: pktline.NewScanner(limitPart(stream, maxAdvertisement, "references")), reference: []byte(reference),
	})
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

// leadingPackets are those of an advertisement that are decoded whatever is in them: the service's name and a flush, over
// HTTP, and the first reference, with the capabilities.
const leadingPackets = 3

// advertisementFilter leaves references out of an advertisement, because there can be millions that concern no branch of
// ours, and the library's decoder keeps what it decodes.
type advertisementFilter struct {
	packets   *pktline.Scanner
	reference []byte
	seen      int
	pending   bytes.Buffer
}

// Read reads packets that are to be decoded.
func (f *advertisementFilter) Read(buffer []byte) (int, error) {
	for f.pending.Len() == 0 {
		if !f.packets.Scan() {
			return 0, cmp.Or(f.packets.Err(), io.EOF)
		}
		f.seen++
		if packet := f.packets.Bytes(); f.seen <= leadingPackets || f.counts(packet) {
			if err := pktline.NewEncoder(&f.pending).Encode(packet); err != nil {
				return 0, fmt.Errorf("read the references: %w", err)
			}
		}
	}
	return f.pending.Read(buffer)
}

// counts says whether a packet is a flush or names the reference.
func (f *advertisementFilter) counts(packet []byte) bool {
	name, found := bytes.CutSuffix(bytes.TrimSuffix(packet, []byte("\n")), f.reference)
	return len(packet) == 0 || found && len(f.reference) > 0 && bytes.HasSuffix(name, []byte(" "))
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

// message keeps the beginning of what is written to it. It embeds no buffer: io.Copy would read everything into that by a
// method of the buffer's own.
type message struct{ kept []byte }

// Write keeps what there is room for and takes the rest as well.
func (m *message) Write(data []byte) (int, error) {
	m.kept = append(m.kept, data[:min(maxMessage-len(m.kept), len(data))]...)
	return len(data), nil
}

func (m *message) text() string { return printable(m.kept) }
