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
const SocketName = "admin.sock"

const (
	// headerTimeout limits the wait for a request on a new connection.
	headerTimeout = 10 * time.Second

	// stallTimeout limits how long a client can leave output unread. A stalled client would hold the resources of its
	// command, such as a view of the stores, forever.
	stallTimeout = time.Minute
)

// Handler executes a command. It reads its input, the body of the request, before it writes, and its output is sent as
// it is written. An error ends the output and is sent to the client, so its text must not contain secrets. The context
// of the request ends with the client and with the socket.
type Handler func(answer io.Writer, request *http.Request) error

// Socket serves commands.
type Socket struct {
	path     string
	listener net.Listener
	mux      *http.ServeMux
	server   *http.Server
	logger   logr.Logger

	// stop cancels the running requests, which running counts.
	stop    context.CancelFunc
	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

// Listen creates the socket in dir. It replaces a socket that a crashed process left, so only the process that locks
// the files of dir is allowed to call it. ctx provides the logger. The socket exists until Close.
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

// listen binds the socket in a private folder, where no other user can reach it before its mode is set, and renames it.
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

// Handle registers the handler of a command with a pattern of http.ServeMux, such as "GET /store/check".
func (s *Socket) Handle(pattern string, handler Handler) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		s.answer(w, r, handler)
	})
}

// Serve serves commands until Close.
func (s *Socket) Serve() error {
	if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving %s: %w", s.path, err)
	}
	return nil
}

// Close cancels running commands, waits for them, and removes the socket. It may be called more than once.
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

// begin counts a request, unless Close was called.
func (s *Socket) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.running.Add(1)
	}
	return !s.closed
}

// answer runs a handler and sends its error, as the status before any output, else as a trailer.
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
	s.logger.Error(err, "Command failed", "command", r.Pattern)
	in.drain()
	if out.begun {
		w.Header().Set(errorTrailer, encodeError(err))
		return
	}
	w.Header().Del("Trailer")
	http.Error(w, err.Error(), http.StatusInternalServerError)
}

// stream flushes what is written, and fails if the client does not read it.
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

// drain reads the rest of the input, because a client that cannot send everything would not read the response. A client
// that still waits to send its input sends nothing.
func (i *input) drain() {
	if i.begun {
		_, _ = io.Copy(io.Discard, i.ReadCloser) // The answer is an error already.
	}
}
