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
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

const (
	// dialTimeout bounds how long a connection takes to open. The context bounds everything.
	dialTimeout = 30 * time.Second
	// maxMessage bounds how much of a server's message is kept, in bytes.
	maxMessage = 4 << 10
)

// service is one of the two services of a Git server.
type service string

const (
	uploadPack  service = transport.UploadPackServiceName
	receivePack service = transport.ReceivePackServiceName
)

// session is one connection to a service, which advertises its references and then serves at most one request.
type session interface {
	// advertisement reads the capabilities and one reference; it skips the others. For a repository without references it
	// is empty.
	advertisement(ctx context.Context, reference string) (*packp.AdvRefs, error)
	// request sends the parts in order and returns the response, which the caller closes.
	request(ctx context.Context, parts ...[]byte) (io.ReadCloser, error)
	// close ends the session. It may be called more than once.
	close()
}

// readAdvertisement decodes the capabilities and one reference of an advertisement. It returns an error for other data.
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

// leadingPackets is how many packets of an advertisement are always decoded: over HTTP the service's name and a flush,
// and the first reference, which has the capabilities.
const leadingPackets = 3

// advertisementFilter omits the other references of an advertisement: there can be millions, and the library's decoder
// keeps what it decodes.
type advertisementFilter struct {
	packets   *pktline.Scanner
	reference []byte
	seen      int
	pending   bytes.Buffer
}

// Read reads the packets that pass the filter.
func (f *advertisementFilter) Read(buffer []byte) (int, error) {
	for f.pending.Len() == 0 {
		if !f.packets.Scan() {
			return 0, cmp.Or(f.packets.Err(), io.EOF)
		}
		f.seen++
		if packet := f.packets.Bytes(); f.seen <= leadingPackets || f.passes(packet) {
			if err := pktline.NewEncoder(&f.pending).Encode(packet); err != nil {
				return 0, fmt.Errorf("read the references: %w", err)
			}
		}
	}
	return f.pending.Read(buffer)
}

// passes reports whether a packet is a flush or names the reference.
func (f *advertisementFilter) passes(packet []byte) bool {
	name, found := bytes.CutSuffix(bytes.TrimSuffix(packet, []byte("\n")), f.reference)
	return len(packet) == 0 || found && len(f.reference) > 0 && bytes.HasSuffix(name, []byte(" "))
}

// printable returns the beginning of a server's message as printable text.
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

// message keeps the beginning of what is written to it. It does not embed bytes.Buffer, because io.Copy would use the
// buffer's ReadFrom and so keep everything.
type message struct{ kept []byte }

// Write keeps what fits and discards the rest.
func (m *message) Write(data []byte) (int, error) {
	m.kept = append(m.kept, data[:min(maxMessage-len(m.kept), len(data))]...)
	return len(data), nil
}

// text returns the lines of the message. Hooks of some servers print empty lines around it, with the prefix of an error.
func (m *message) text() string {
	lines := strings.Split(printable(m.kept), "\n")
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool {
		line = strings.TrimSpace(line)
		return line == "" || line == "error:"
	}), "\n")
}
