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
	w.Header().Set("X-Accel-Buffering", "no") // nginx would hold messages back.
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
func (w *workspace) stream(c *call) error {
	if err := c.decode(&struct{}{}); err != nil {
		return err
	}
	c.session.streams.Add(1)
	defer c.session.streams.Add(-1)
	hub := w.acquire()
	defer w.release()
	subscription := hub.subscribe(w.maxStreams)
	if subscription == nil {
		return &refusal{http.StatusTooManyRequests, "Too many tabs show this page", "Close another tab"}
	}
	defer hub.unsubscribe(subscription)
	out := newStreamWriter(c.w)
	defer out.end()
	first := w.hello
	first.AllowChanges = w.allow.Load()
	allowed := first.AllowChanges
	messages := []any{first}
	ping := time.NewTicker(pingInterval)
	defer ping.Stop()
	var over <-chan time.Time
	if w.streamLife > 0 {
		over = time.After(w.streamLife)
	}
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
		case <-over:
			_ = out.write(againMessage{"again"}) // Otherwise the page opens it again a second later.
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
		messages = hub.take(subscription)
		if now := w.allow.Load(); now != allowed {
			allowed = now
			messages = append(messages, allowMessage{"allow", now})
		}
	}
}
