// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"encoding/json"
	"net/http"
	"time"
)

const (
	// maxStreams is the number of tabs that are shown what happens.
	maxStreams = 16
	// flushPause is the time in which changes are gathered before they are sent.
	flushPause = 100 * time.Millisecond
	// pingInterval is the time between two messages that show that the stream works.
	pingInterval = 10 * time.Second
	// writeTimeout is how long a client may read nothing.
	writeTimeout = time.Minute
)

// streamWriter writes messages, one a line.
type streamWriter struct {
	encoder *json.Encoder
	control *http.ResponseController
}

func newStreamWriter(w http.ResponseWriter) *streamWriter {
	w.Header().Set("Content-Type", "application/x-ndjson")
	return &streamWriter{json.NewEncoder(w), http.NewResponseController(w)}
}

// write sends messages. It fails if the client does not read them for too long.
func (s *streamWriter) write(messages ...any) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	for _, message := range messages {
		if err := s.encoder.Encode(message); err != nil {
			return err
		}
	}
	return s.control.Flush()
}

// end removes the time limit from the connection, which is used again.
func (s *streamWriter) end() {
	_ = s.control.SetWriteDeadline(time.Time{}) // The connection is closed if it fails.
}

// stream sends all rows, and then changes, until the client closes the request or the session ends.
func (s *server) stream(c *call) error {
	if err := c.decode(&struct{}{}); err != nil {
		return err
	}
	subscription := s.hub.subscribe(maxStreams)
	if subscription == nil {
		return &refusal{http.StatusTooManyRequests, "Too many tabs show this page", "Close another tab"}
	}
	defer s.hub.unsubscribe(subscription)
	out := newStreamWriter(c.w)
	defer out.end()
	first := s.hello
	first.AllowChanges = s.allow.Load()
	allowed := first.AllowChanges
	messages := []any{first}
	ping := time.NewTicker(pingInterval)
	defer ping.Stop()
	for {
		if len(messages) > 0 {
			if err := out.write(messages...); err != nil {
				return errClosed
			}
		}
		messages = nil
		select {
		case <-c.r.Context().Done():
			return errClosed
		case <-c.session.ended:
			return errClosed
		case <-ping.C:
			messages = append(messages, pingMessage{"ping"})
			continue
		case <-subscription.changed:
		}
		select { // Changes come in groups.
		case <-c.r.Context().Done():
			return errClosed
		case <-time.After(flushPause):
		}
		messages = s.hub.take(subscription)
		if now := s.allow.Load(); now != allowed {
			allowed = now
			messages = append(messages, allowMessage{"allow", now})
		}
	}
}
