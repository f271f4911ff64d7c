// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestLateCode checks that a code lives for a minute, and that there are not more than some codes.
func TestLateCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &links{now: time.Now}
		open := func(code string) error {
			_, err := l.open(nil, &sessionRequest{Code: code})
			return err
		}
		inTime, late := l.newCode(), l.newCode()
		time.Sleep(codeLife) //nolint:forbidigo // The time of a synctest bubble.
		if err := open(inTime); err != nil {
			t.Errorf("a code after a minute: %v", err)
		}
		time.Sleep(time.Nanosecond) //nolint:forbidigo // The time of a synctest bubble.
		for range 2 {
			var refused *refusal
			if err := open(late); !errors.As(err, &refused) || refused.status != http.StatusUnauthorized || refused.do != newLinkHint {
				t.Errorf("a code after more than a minute: %v", err)
			}
		}
		oldest := l.newCode()
		for range maxCodes {
			l.newCode()
		}
		if open(oldest) == nil {
			t.Errorf("more than %d codes are open", maxCodes)
		}
	})
}

// TestSessions checks which session ends when there are too many: the one that was not used for the longest time, of those without a stream.
func TestSessions(t *testing.T) {
	s := &sessions{most: 4, mostOfUser: 3}
	open := func(user string) string {
		t.Helper()
		token, err := s.open(&login{workspace: &workspace{cluster: &cluster{}}, identity: &identity{name: user}})
		if err != nil {
			t.Fatalf("%s: %v", user, err)
		}
		return token
	}
	other := open("john")
	shown, used, closed := open("jane"), open("jane"), open("jane")
	s.find(shown).streams.Add(1)
	ended := s.find(closed).ended
	s.find(used)
	fourth := open("jane")
	select {
	case <-ended:
	default:
		t.Error("the streams of the session continue")
	}
	if s.find(closed) != nil {
		t.Error("a user has more sessions than allowed")
	}
	for _, of := range []string{used, fourth, other} {
		s.find(of).streams.Add(1)
	}
	var refused *refusal
	if _, err := s.open(&login{workspace: &workspace{cluster: &cluster{}}, identity: &identity{name: "jane"}}); !errors.As(err, &refused) || refused.status != http.StatusTooManyRequests {
		t.Errorf("more tabs of a user than allowed: %v", err)
	}
	open("jim") // One of jane's ends, who has most.
	if s.find(shown) != nil || slices.ContainsFunc([]string{other, used, fourth}, func(of string) bool { return s.find(of) == nil }) {
		t.Error("another session has ended than the oldest of the user with most of them")
	}
}

// TestSessionsWithoutStreams ends a session without a stream rather than one of a tab that is shown, whoever has most.
func TestSessionsWithoutStreams(t *testing.T) {
	for range 20 { // The users are in no order.
		s := &sessions{most: 4, mostOfUser: 3}
		open := func(user string, streams int32) *session {
			t.Helper()
			token, err := s.open(&login{workspace: &workspace{cluster: &cluster{}}, identity: &identity{name: user}})
			if err != nil {
				t.Fatal(err)
			}
			opened := s.find(token)
			opened.streams.Add(streams)
			return opened
		}
		shown := []*session{open("jane", 1), open("jane", 1)}
		open("john", 0)
		open("jim", 0)
		open("ann", 1)
		if slices.ContainsFunc(shown, func(of *session) bool { return !slices.Contains(s.opened, of) }) {
			t.Fatal("a session with a stream has ended, and one without does not")
		}
	}
}

// TestIdleSession ends a session after 8 hours without a request.
func TestIdleSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sessions{most: 1, mostOfUser: 1}
		token, err := s.open(&login{workspace: &workspace{cluster: &cluster{}}, identity: &identity{name: "jane"}})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			time.Sleep(sessionIdle - 1) //nolint:forbidigo // The time of a synctest bubble.
			if s.find(token) == nil {
				t.Fatal("a session that is used has ended")
			}
		}
		time.Sleep(sessionIdle) //nolint:forbidigo // The time of a synctest bubble.
		synctest.Wait()
		if s.find(token) != nil {
			t.Error("a session that is not used has not ended")
		}
	})
}

// TestRest checks that a workspace follows the cluster while it has streams, and a minute longer.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var followed atomic.Int32
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w := &workspace{follow: func(*hub) func() {
			followed.Add(1)
			ctx, stop := context.WithCancel(ctx)
			context.AfterFunc(ctx, func() { followed.Add(-1) })
			return stop
		}}
		first := w.acquire()
		if w.acquire() != first {
			t.Error("two streams have two hubs")
		}
		w.release()
		w.release()
		time.Sleep(lingering - 1) //nolint:forbidigo // The time of a synctest bubble.
		if w.acquire() != first {
			t.Error("a stream soon after another one begins anew")
		}
		time.Sleep(2 * lingering) //nolint:forbidigo // The time of a synctest bubble.
		if followed.Load() != 1 {
			t.Errorf("%d followers of a workspace with a stream", followed.Load())
		}
		w.release()
		time.Sleep(lingering) //nolint:forbidigo // The time of a synctest bubble.
		synctest.Wait()
		if followed.Load() != 0 {
			t.Error("a workspace without streams follows the cluster")
		}
		if w.acquire() == first {
			t.Error("a later stream begins with old rows")
		}
	})
}
