// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

// streamSession is a conversation with a service that runs as a command: locally or behind SSH.
type streamSession struct {
	input  io.WriteCloser
	output io.Reader
	budget *budget
	// complaints is what the command writes to its standard error.
	complaints *message
	// end releases the command and waits for it, so that complaints are complete afterwards.
	end    func()
	ended  bool
	served bool
}

func (s *streamSession) advertisement(_ context.Context, reference string) (*packp.AdvRefs, error) {
	advertised, err := readAdvertisement(s.output, reference)
	if err != nil {
		return nil, s.explain(err)
	}
	return advertised, nil
}

func (s *streamSession) request(_ context.Context, parts ...[]byte) (io.ReadCloser, error) {
	s.served = true
	for _, part := range parts {
		if _, err := s.input.Write(part); err != nil {
			// The command may have answered why before it stopped listening.
			return s, nil //nolint:nilerr // Reading the answer tells.
		}
	}
	if err := s.input.Close(); err != nil {
		return nil, s.explain(fmt.Errorf("send the request: %w", err))
	}
	return s, nil
}

// Read reads the answer.
func (s *streamSession) Read(buffer []byte) (int, error) {
	count, err := s.output.Read(buffer)
	if err != nil && (!errors.Is(err, io.EOF) || s.budget.spent()) {
		err = s.explain(err)
	}
	return count, err
}

// Close ends the session.
func (s *streamSession) Close() error {
	s.close()
	return nil
}

func (s *streamSession) close() {
	if s.ended {
		return
	}
	s.ended = true
	if !s.served {
		_, _ = s.input.Write(pktline.FlushPkt) // The polite way to want nothing.
	}
	_ = s.input.Close()
	s.end()
}

// explain adds what the command complained about to an error that came of it.
func (s *streamSession) explain(err error) error {
	s.served = true
	s.close()
	if s.budget.spent() { // Then the connection was ended here, which the libraries between call the server's doing.
		return s.budget.refusal()
	}
	if text := s.complaints.text(); text != "" {
		return refuse(kindOfText(text, kindOf(err)), "the server says: %s", text)
	}
	return err
}
