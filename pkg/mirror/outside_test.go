// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/test/devcluster/gitserver"
	"github.com/configbutler/slipstream/test/testkit"
)

// process is the process under test. It can die at every externally visible step: before and after each write to the store and each push.
type process struct {
	mu      sync.Mutex
	dieAt   string
	after   int
	dead    bool
	died    chan struct{}
	kill    context.CancelFunc
	reached map[string]int
}

// start starts the process; kill cancels everything in it.
func (p *process) start(kill context.CancelFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead, p.dieAt, p.died, p.kill, p.reached = false, "", make(chan struct{}), kill, map[string]int{}
}

// killAt kills the process when a step is reached for the nth time from now, and closes the channel then.
func (p *process) killAt(moment string, n int) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dieAt, p.after = moment, n
	return p.died
}

// reach returns an error if the process is dead.
func (p *process) reach(moment string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reached[moment]++
	if moment == p.dieAt && !p.dead {
		if p.after--; p.after <= 0 {
			p.dead = true
			p.kill()
			close(p.died)
		}
	}
	if p.dead {
		return testkit.ErrDead
	}
	return nil
}

// times returns how often a step was reached.
func (p *process) times(moment string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reached[moment]
}

// storeKV is a real store on disk that can fail.
type storeKV struct {
	clientv3.KV
	process *process
	// failure is the error of writes.
	failure  atomic.Pointer[storeFailure]
	failures atomic.Int32
}

// storeFailure is the error of the writes at one step, or of all.
type storeFailure struct {
	moment string
	err    error
	// done is set if the writes take effect nevertheless.
	done bool
}

func newStoreKV(t *testing.T, process *process) *storeKV {
	t.Helper()
	s := &storeKV{process: process}
	s.KV = bolttest.WithWrites(bolttest.NewKV(t), s.write)
	return s
}

// fail makes all writes fail; nil makes them succeed.
func (s *storeKV) fail(err error) { s.failAt("", err) }

// failAt makes the writes at one step fail.
func (s *storeKV) failAt(moment string, err error) {
	s.failure.Store(&storeFailure{moment: moment, err: err})
}

// loseResponses makes the writes at one step take effect but return an error.
func (s *storeKV) loseResponses(moment string, err error) {
	s.failure.Store(&storeFailure{moment: moment, err: err, done: true})
}

func (s *storeKV) failing() bool {
	f := s.failure.Load()
	return f != nil && f.err != nil
}

// write makes a transaction, before and after which the process may die.
func (s *storeKV) write(_ context.Context, write bolttest.Write) error {
	if write.Deletion {
		return write.Commit()
	}
	moment := "delete "
	if write.Put {
		moment = "put "
	}
	moment += strings.Split(write.Key, "/")[2]
	if f := s.failure.Load(); f != nil && f.err != nil && (f.moment == "" || f.moment == moment) {
		s.failures.Add(1)
		if f.done {
			_ = write.Commit()
		}
		return f.err
	}
	if err := s.process.reach("before " + moment); err != nil {
		return err
	}
	err := write.Commit()
	if dead := s.process.reach("after " + moment); dead != nil {
		return dead
	}
	return err
}

// gitFront is a real Git server behind a handler that the test controls.
type gitFront struct {
	url, root string
	process   *process
	git       http.Handler
	// door, if set, is called with every request before Git, and reports whether Git handles it.
	door atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
	// loseResponses is the number of pushes whose responses are lost.
	loseResponses atomic.Int32
}

func newGitFront(t *testing.T, process *process) *gitFront {
	t.Helper()
	f := &gitFront{root: t.TempDir(), process: process}
	repositories, err := gitserver.NewRepositories(f.root)
	if err != nil {
		t.Fatal(err)
	}
	if f.git, err = repositories.Handler(); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

// guard sets door; nil has Git handle all requests.
func (f *gitFront) guard(door func(http.ResponseWriter, *http.Request) bool) {
	if door == nil {
		f.door.Store(nil)
		return
	}
	f.door.Store(&door)
}

// down is a door that closes every connection.
func down(w http.ResponseWriter, _ *http.Request) bool { return breakOff(w) }

// refusesTwice closes the connections of two requests, so that a push in progress has failed even if its request was sent again.
func (f *gitFront) refusesTwice() {
	refused := make(chan struct{}, 2)
	f.guard(func(w http.ResponseWriter, _ *http.Request) bool {
		defer signal(refused)
		return breakOff(w)
	})
	<-refused
	<-refused
}

// landLate closes the connection of the next push, and performs it when the following push has arrived, before that one. The channel is
// closed when the first has arrived.
func (f *gitFront) landLate() <-chan struct{} {
	received := make(chan struct{})
	var late *http.Request
	var pushes atomic.Int32
	f.guard(func(w http.ResponseWriter, r *http.Request) bool {
		if !isPush(r) {
			return true
		}
		switch pushes.Add(1) {
		case 1:
			late, _ = arrived(r)
			close(received)
			return breakOff(w)
		case 2:
			f.git.ServeHTTP(httptest.NewRecorder(), late)
		}
		return true
	})
	return received
}

func isPush(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/git-receive-pack")
}

// arrived returns a copy of a request with its whole body, which is handled even if the client has closed the connection.
func arrived(r *http.Request) (*http.Request, error) {
	body, err := io.ReadAll(r.Body)
	whole := r.Clone(context.WithoutCancel(r.Context()))
	whole.Body, whole.ContentLength, whole.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	return whole, err
}

func breakOff(w http.ResponseWriter) bool {
	if hijacker, ok := w.(http.Hijacker); ok {
		if connection, _, err := hijacker.Hijack(); err == nil {
			_ = connection.Close()
		}
	}
	return false
}

func (f *gitFront) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if door := f.door.Load(); door != nil && !(*door)(w, r) {
		return
	}
	if !isPush(r) {
		f.git.ServeHTTP(w, r)
		return
	}
	push, err := arrived(r)
	if err != nil || f.process.reach("before push") != nil {
		breakOff(w)
		return
	}
	answer := httptest.NewRecorder()
	f.git.ServeHTTP(answer, push)
	if f.process.reach("after push") != nil || f.loseResponses.Add(-1) >= 0 {
		breakOff(w)
		return
	}
	for key, values := range answer.Header() {
		w.Header()[key] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// require rejects requests without the name and the password.
func (f *gitFront) require(name, password string) {
	f.guard(func(w http.ResponseWriter, r *http.Request) bool {
		if gotName, gotPassword, ok := r.BasicAuth(); ok && gotName == name && gotPassword == password {
			return true
		}
		http.Error(w, "who are you? "+r.Header.Get("Authorization"), http.StatusUnauthorized)
		return false
	})
}

// hook installs a hook of a repository; an empty script removes it.
func (f *gitFront) hook(t *testing.T, repository, name, script string) {
	t.Helper()
	path := filepath.Join(f.root, repository, "hooks", name)
	if script == "" {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}
