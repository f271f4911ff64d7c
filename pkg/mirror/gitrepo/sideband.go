// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"bufio"
	"errors"
	"io"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
)

const (
	// packetBuffer holds one packet of the largest size.
	packetBuffer = 64 << 10
	// packetHeader is the size of the length field of a packet, in bytes.
	packetHeader = 4
)

// sidebandReader reads the data of a response in which the server also sends progress messages.
type sidebandReader struct {
	packets *pktline.Scanner
	pending []byte
	// progress receives progress and messages, of which the server may send progressLeft more bytes.
	progress     io.Writer
	progressLeft int
}

// newDataReader returns a reader of the data of a response. requested are the capabilities of the request, which determine its format.
func newDataReader(response *bufio.Reader, requested *capability.List, progress io.Writer) io.Reader {
	if requested.Supports(capability.Sideband64k) || requested.Supports(capability.Sideband) {
		return &sidebandReader{packets: pktline.NewScanner(response), progress: progress, progressLeft: maxProgress}
	}
	return response
}

// Read reads data. A message on the error channel ends it with an error.
func (s *sidebandReader) Read(buffer []byte) (int, error) {
	for len(s.pending) == 0 {
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	count := copy(buffer, s.pending)
	s.pending = s.pending[count:]
	return count, nil
}

func (s *sidebandReader) next() error {
	if !s.packets.Scan() {
		if err := s.packets.Err(); err != nil {
			return packetError(err)
		}
		return io.EOF
	}
	packet := s.packets.Bytes()
	if len(packet) == 0 {
		return io.EOF
	}
	switch channel, content := sideband.Channel(packet[0]), packet[1:]; channel {
	case sideband.PackData:
		s.pending = content
	case sideband.ProgressMessage:
		if s.progressLeft -= packetHeader + len(packet); s.progressLeft < 0 {
			return tooLarge("the server sends more than %s of progress and messages", sizeText(maxProgress))
		}
		_, _ = s.progress.Write(content)
	case sideband.ErrorMessage:
		text := printable(content)
		return refuse(kindOfText(text, Rejected), "the server says: %s", text)
	default:
		return refuse(Protocol, "the server sends on unknown channel %d", channel)
	}
	return nil
}

// packetError returns the error for a packet that could not be read.
func packetError(err error) error {
	var line *pktline.ErrorLine
	switch {
	case errors.As(err, &line):
		return refuse(kindOfText(line.Text, Rejected), "the server says: %s", line.Text)
	case errors.Is(err, pktline.ErrInvalidPktLen):
		return refuse(Protocol, "the server does not speak Git's protocol: %v", err)
	}
	return err
}
