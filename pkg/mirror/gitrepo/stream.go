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

// streamSession is a session with a service that runs as a command, locally or over SSH.
type streamSession struct {
	input  io.WriteCloser
	output io.Reader
	budget *budget
	// stderr has the beginning of the command's standard error.
	stderr *message
	// end stops the command and waits for it, so that stderr is complete afterwards.
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
			// The command may have sent the reason before it closed its input.
			return s, nil //nolint:nilerr // Reading the response returns the error.
		}
	}
	if err := s.input.Close(); err != nil {
		return nil, s.explain(fmt.Errorf("send the request: %w", err))
	}
	return s, nil
}

// Read reads the response.
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
		_, _ = s.input.Write(pktline.FlushPkt) // Ends the session without a request.
	}
	_ = s.input.Close()
	s.end()
}

// explain returns the command's standard error, if any, as the reason of a failure.
func (s *streamSession) explain(err error) error {
	s.served = true
	s.close()
	if s.budget.spent() { // The budget ended the connection; err blames the server.
		return s.budget.refusal()
	}
	if text := s.stderr.text(); text != "" {
		return refuse(kindOfText(text, kindOf(err)), "the server says: %s", text)
	}
	return err
}
