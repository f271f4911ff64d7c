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
	// answerBuffer holds one packet of the largest size.
	answerBuffer = 64 << 10
	// packetHeader is the length of a packet's length.
	packetHeader = 4
)

// sidebandReader takes a service's data out of its answer, beside which the server may talk to people.
type sidebandReader struct {
	packets *pktline.Scanner
	pending []byte
	// talk receives what is meant for people, of which the server may send talkLeft more bytes.
	talk     io.Writer
	talkLeft int
}

// newDataReader returns the reader of an answer's data, as the capabilities of the request have it sent.
func newDataReader(answer *bufio.Reader, requested *capability.List, talk io.Writer) io.Reader {
	if requested.Supports(capability.Sideband64k) || requested.Supports(capability.Sideband) {
		return &sidebandReader{packets: pktline.NewScanner(answer), talk: talk, talkLeft: maxTalk}
	}
	return answer
}

// Read reads data only; words of failure end it with an error that holds them.
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
		if s.talkLeft -= packetHeader + len(packet); s.talkLeft < 0 {
			return tooLarge("the server sends more than %s of progress and messages", sizeText(maxTalk))
		}
		_, _ = s.talk.Write(content)
	case sideband.ErrorMessage:
		text := printable(content)
		return refuse(kindOfText(text, Rejected), "the server says: %s", text)
	default:
		return refuse(Protocol, "the server sends on unknown channel %d", channel)
	}
	return nil
}

// packetError judges why no packet could be read.
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
