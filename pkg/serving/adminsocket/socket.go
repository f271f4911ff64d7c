// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package adminsocket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"k8s.io/klog/v2"
)

// SocketName is the name of the socket in the data directory.
const SocketName = "control.sock"

const (
	// headerTimeout bounds the wait for a request on a new connection.
	headerTimeout = 10 * time.Second

	// stallTimeout is how long an asker may leave what was written to it unread. A stalled one would hold what its command
	// holds, such as a view of the stores, for ever.
	stallTimeout = time.Minute
)

// Handler does what a command asks. It takes its input, the body of the request,
// before it writes, and what it writes reaches the asker as it is written. An error ends the answer and reaches the asker as well, so its text
// must hold no secret. The context of the request ends with the asker and with
// the socket.
type Handler func(answer io.Writer, request *http.Request) error

// Socket takes the requests of commands.
type Socket struct {
	path     string
	listener net.Listener
	mux      *http.ServeMux
	server   *http.Server
	logger   logr.Logger

	// stop ends the requests under way, which running counts.
	stop    context.CancelFunc
	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

// Listen makes the socket in dir. It takes the place of one that was left behind,
// so only the process that holds the files of dir may call it. ctx gives the
// logger; the socket is there until Close.
func Listen(ctx context.Context, dir string) (*Socket, error) {
	listener, err := listen(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", filepath.Join(dir, SocketName), err)
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &Socket{
		path: filepath.Join(dir, SocketName), listener: listener,
		mux: http.NewServeMux(), logger: klog.FromContext(ctx), stop: stop,
	}
	s.server = &http.Server{
		Handler:           s.mux,
		ReadHeaderTimeout: headerTimeout,
		BaseContext:       func(net.Listener) context.Context { return life },
	}
	s.server.SetKeepAlivesEnabled(false)
	return s, nil
}

// listen binds the socket in a folder of its own, where nobody can reach it before
// its mode is right, and moves it to its place.
func listen(ctx context.Context, dir string) (net.Listener, error) {
	private, err := os.MkdirTemp(dir, ".control-") // mode 0700
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(private) }() // It is empty unless something failed, and harmless.
	folder, err := os.Open(private)
	if err != nil {
		return nil, err
	}
	defer func() { _ = folder.Close() }() // Only read.
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", address(folder))
	if err != nil {
		return nil, err
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false) // It is moved.
	bound := filepath.Join(private, SocketName)
	if err := errors.Join(os.Chmod(bound, 0o600), os.Rename(bound, filepath.Join(dir, SocketName))); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// Handle names the handler of a command, as http.ServeMux does: "GET /store/check".
func (s *Socket) Handle(pattern string, handler Handler) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		s.answer(w, r, handler)
	})
}

// Serve answers until Close.
func (s *Socket) Serve() error {
	if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving %s: %w", s.path, err)
	}
	return nil
}

// Close ends what is being answered, waits for it, and removes the socket. It may
// be called more than once.
func (s *Socket) Close() error {
	defer s.running.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.stop()
	return errors.Join(s.server.Close(), os.Remove(s.path))
}

// begin counts a request in, unless Close was called.
func (s *Socket) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.running.Add(1)
	}
	return !s.closed
}

// answer runs a handler and sends its error, as the status if there was no output yet, else behind it.
func (s *Socket) answer(w http.ResponseWriter, r *http.Request, handler Handler) {
	if !s.begin() {
		http.Error(w, "the server is shutting down", http.StatusServiceUnavailable)
		return
	}
	defer s.running.Done()
	w.Header().Set("Trailer", errorTrailer)
	out := &stream{response: w, control: http.NewResponseController(w)}
	in := &input{ReadCloser: r.Body}
	r.Body = in
	err := handler(out, r)
	if err == nil {
		return
	}
	s.logger.Error(err, "A command failed", "command", r.Pattern)
	in.drain()
	if out.begun {
		w.Header().Set(errorTrailer, encodeError(err))
		return
	}
	w.Header().Del("Trailer")
	http.Error(w, err.Error(), http.StatusInternalServerError)
}

// stream sends what is written at once, and fails when nobody reads it.
type stream struct {
	response http.ResponseWriter
	control  *http.ResponseController
	begun    bool
}

func (s *stream) Write(p []byte) (int, error) {
	s.begun = true
	if err := s.control.SetWriteDeadline(time.Now().Add(stallTimeout)); err != nil {
		return 0, err
	}
	n, err := s.response.Write(p)
	if err != nil {
		return n, err
	}
	return n, s.control.Flush()
}

// input is the body of a request.
type input struct {
	io.ReadCloser
	begun bool
}

func (i *input) Read(p []byte) (int, error) {
	i.begun = true
	return i.ReadCloser.Read(p)
}

// drain takes what the handler left, because an asker that cannot send all would not read the answer. One that was not
// told to send yet sends nothing.
func (i *input) drain() {
	if i.begun {
		_, _ = io.Copy(io.Discard, i.ReadCloser) // The answer is an error already.
	}
}
