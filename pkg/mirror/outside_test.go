// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"bytes"
	"context"
	"errors"
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

	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/test/devcluster/gitserver"
)

// errDead is the error of everything that a killed process does.
var errDead = errors.New("the process is dead")

// life is the life of a process. It can be ended at every externally visible step: before and after each write to the store and each push.
type life struct {
	mu      sync.Mutex
	dieAt   string
	after   int
	dead    bool
	died    chan struct{}
	kill    context.CancelFunc
	reached map[string]int
}

// begin starts the process; kill cancels everything in it.
func (l *life) begin(kill context.CancelFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead, l.dieAt, l.died, l.kill, l.reached = false, "", make(chan struct{}), kill, map[string]int{}
}

// arm kills the process when a step is reached for the nth time from now, and closes the channel then.
func (l *life) arm(moment string, n int) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dieAt, l.after = moment, n
	return l.died
}

// reach returns an error if the process is dead.
func (l *life) reach(moment string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reached[moment]++
	if moment == l.dieAt && !l.dead {
		if l.after--; l.after <= 0 {
			l.dead = true
			l.kill()
			close(l.died)
		}
	}
	if l.dead {
		return errDead
	}
	return nil
}

// times returns how often a step was reached.
func (l *life) times(moment string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reached[moment]
}

// storeKV is a real store on disk that can fail.
type storeKV struct {
	clientv3.KV
	life *life
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

func newStoreKV(t *testing.T, life *life) *storeKV {
	t.Helper()
	engine, err := bolt.Open(t.Context(), filepath.Join(t.TempDir(), "work.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return &storeKV{KV: bolt.NewClient(context.WithoutCancel(t.Context()), engine).KV, life: life}
}

// fail makes all writes fail; nil makes them succeed.
func (s *storeKV) fail(err error) { s.failAt("", err) }

// failAt makes the writes at one step fail.
func (s *storeKV) failAt(moment string, err error) {
	s.failure.Store(&storeFailure{moment: moment, err: err})
}

// loseAnswers makes the writes at one step take effect but return an error.
func (s *storeKV) loseAnswers(moment string, err error) {
	s.failure.Store(&storeFailure{moment: moment, err: err, done: true})
}

func (s *storeKV) failing() bool {
	f := s.failure.Load()
	return f != nil && f.err != nil
}

func (s *storeKV) Txn(ctx context.Context) clientv3.Txn {
	return &storeTxn{Txn: s.KV.Txn(ctx), store: s}
}

// storeTxn is a transaction during which the process may die.
type storeTxn struct {
	clientv3.Txn
	store  *storeKV
	moment string
}

func (x *storeTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	x.moment = "delete"
	if ops[0].IsPut() {
		x.moment = "put"
	}
	x.moment += " " + strings.Split(string(ops[0].KeyBytes()), "/")[2]
	x.Txn = x.Txn.Then(ops...)
	return x
}

func (x *storeTxn) Commit() (*clientv3.TxnResponse, error) {
	if f := x.store.failure.Load(); f != nil && f.err != nil && (f.moment == "" || f.moment == x.moment) {
		x.store.failures.Add(1)
		if f.done {
			_, _ = x.Txn.Commit()
		}
		return nil, f.err
	}
	if err := x.store.life.reach("before " + x.moment); err != nil {
		return nil, err
	}
	response, err := x.Txn.Commit()
	if dead := x.store.life.reach("after " + x.moment); dead != nil {
		return nil, dead
	}
	return response, err
}

// gitFront is a real Git server behind a handler that the test controls.
type gitFront struct {
	url, root string
	life      *life
	git       http.Handler
	// door, if set, is called with every request before Git, and reports whether Git handles it.
	door atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
	// loseAnswers is the number of pushes whose responses are lost.
	loseAnswers atomic.Int32
}

func newGitFront(t *testing.T, life *life) *gitFront {
	t.Helper()
	f := &gitFront{root: t.TempDir(), life: life}
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
	if err != nil || f.life.reach("before push") != nil {
		breakOff(w)
		return
	}
	answer := httptest.NewRecorder()
	f.git.ServeHTTP(answer, push)
	if f.life.reach("after push") != nil || f.loseAnswers.Add(-1) >= 0 {
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
