// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/configbutler/slipstream/pkg/mirror/internal/fairshare"
)

const (
	// DefaultMaxMemory is the default of Limits.Memory: 256 MiB, enough for a branch of about a million files.
	DefaultMaxMemory = 256 << 20
	// DefaultMaxTransfer is the default of Limits.Transfer: 16 GiB, about what can be inflated in two minutes.
	DefaultMaxTransfer = 16 << 30

	// maxAdvertisement bounds the list of references, in bytes: about four million of them.
	maxAdvertisement = 256 << 20
	// maxNegotiation bounds what a server sends before the pack, in bytes.
	maxNegotiation = 16 << 20
	// maxProgress bounds progress and the output of hooks, and maxReport the report of a push, in bytes.
	maxProgress = 16 << 20
	maxReport   = 1 << 20
	// maxHeader bounds the headers of an HTTP response, in bytes.
	maxHeader = 256 << 10
	// maxPrivateKey bounds a private key, in bytes. RSA with 16384 bits takes 12 KiB, and a second for a signature, which
	// no context can end. Larger keys take minutes.
	maxPrivateKey = 16 << 10

	// smallMemory is how much an operation may hold without a slot of Limits.Large, in bytes: enough for a branch of 30 000
	// files, and small enough for all workers at once.
	smallMemory = 8 << 20
)

var (
	// errTooLarge is returned if a limit ended the reading.
	errTooLarge = errors.New("the answer is larger than what is read of it")
	// errTimeout is the cause of the cancellation of a call that has taken longer than Limits.Time.
	errTimeout = errors.New("the server takes too long")
)

// Limits bound what one call of a method of Remote or Branch uses, whatever the server sends. The zero value has the
// defaults.
type Limits struct {
	// Memory bounds how many bytes of the server's objects are held at a time; 0 is DefaultMaxMemory. An object counts with
	// the size in its header, before it is allocated.
	Memory int64
	// Transfer bounds how many bytes are read; 0 is DefaultMaxTransfer. Objects count with their inflated size as well,
	// deltas with the size of their result, and each object with another 512 bytes.
	Transfer int64
	// Time bounds how long a call waits for the server and reads from it; 0 is no limit.
	Time time.Duration
	// PastFiles bounds, in bytes, what a server sends of its history that serves neither files nor past commits by hash; 0 is 256 MiB.
	PastFiles int64
	// Large, if set, bounds how many calls that need more than 8 MiB of memory run at a time. Remotes share it; each
	// acquires its slots for Owner. The wait for a slot does not count against Time.
	Large *fairshare.Slots
	Owner string
}

// budget counts what one operation reads and holds against its Limits. Every byte from a server is counted.
type budget struct {
	limits Limits
	// read is counted by the reader of the connection, which for SSH is another goroutine.
	read atomic.Int64
	held int64
	// large releases the slot of limits.Large; nil if none is held.
	large func()
	// timer ends the call at the deadline; nil without a time limit.
	timer    *time.Timer
	deadline time.Time
	// cancel ends the call's context.
	cancel context.CancelCauseFunc
}

// begin returns the budget and the context of a call. The caller must end the budget.
func (r *Remote) begin(ctx context.Context) (context.Context, *budget) {
	b := r.newBudget()
	if b.limits.Time <= 0 {
		return ctx, b
	}
	ctx, b.cancel = context.WithCancelCause(ctx)
	b.deadline = time.Now().Add(b.limits.Time)
	b.timer = time.AfterFunc(b.limits.Time, func() { b.cancel(errTimeout) })
	return ctx, b
}

func (r *Remote) newBudget() *budget {
	b := &budget{limits: r.Limits}
	if b.limits.Memory <= 0 {
		b.limits.Memory = DefaultMaxMemory
	}
	if b.limits.Transfer <= 0 {
		b.limits.Transfer = DefaultMaxTransfer
	}
	if b.limits.PastFiles <= 0 {
		b.limits.PastFiles = maxPastFiles
	}
	return b
}

// end releases what the operation has acquired.
func (b *budget) end() {
	if b.timer != nil {
		b.timer.Stop()
		b.cancel(nil)
	}
	if b.large != nil {
		b.large()
		b.large = nil
	}
}

// take counts bytes that were read or are about to be read.
func (b *budget) take(size int64) error {
	if size < 0 || b.read.Add(size) > b.limits.Transfer {
		return b.refusal()
	}
	return nil
}

// spent reports whether more was read than Limits.Transfer.
func (b *budget) spent() bool { return b.read.Load() > b.limits.Transfer }

// refusal returns the error for a transfer that exceeds the limit.
func (b *budget) refusal() error {
	return tooLarge("the server sends more than %s", sizeText(b.limits.Transfer))
}

// hold counts bytes that are about to be held in memory.
func (b *budget) hold(ctx context.Context, size int64) error {
	if size < 0 || size > b.limits.Memory-b.held {
		return tooLarge("reading it takes more than %s of memory, which --git-max-memory-mib bounds", sizeText(b.limits.Memory))
	}
	b.held += size
	if b.held <= smallMemory || b.large != nil || b.limits.Large == nil {
		return nil
	}
	return b.waitForSlot(ctx)
}

// waitForSlot acquires a slot for a large operation and extends the deadline by the time that this takes.
func (b *budget) waitForSlot(ctx context.Context) error {
	if b.timer != nil && b.timer.Stop() {
		left := time.Until(b.deadline)
		defer func() {
			b.deadline = time.Now().Add(left)
			b.timer.Reset(left)
		}()
	}
	release, err := b.limits.Large.Acquire(ctx, b.limits.Owner)
	if err != nil {
		return fmt.Errorf("wait for other large repositories to be read: %w", err)
	}
	b.large = release
	return nil
}

// release reverts hold.
func (b *budget) release(size int64) { b.held -= size }

// meter returns a reader that counts what is read from the stream.
func (b *budget) meter(stream io.Reader) io.Reader { return &meteredReader{stream: stream, budget: b} }

type meteredReader struct {
	stream io.Reader
	budget *budget
}

// Read reads from the stream while the budget lasts.
func (m *meteredReader) Read(buffer []byte) (int, error) {
	count, err := m.stream.Read(buffer)
	if refused := m.budget.take(int64(count)); refused != nil {
		return 0, refused
	}
	return count, err
}

// limitedReader reads one part of a response up to a limit.
type limitedReader struct {
	stream io.Reader
	left   int64
	// exceeded is the error at the limit.
	exceeded error
}

func limitPart(stream io.Reader, limit int64, part string) *limitedReader {
	return &limitedReader{stream: stream, left: limit, exceeded: tooLarge("the server sends more than %s of %s", sizeText(limit), part)}
}

// Read reads up to the limit and fails beyond it.
func (l *limitedReader) Read(buffer []byte) (int, error) {
	if l.left <= 0 {
		return 0, l.exceeded
	}
	count, err := l.stream.Read(buffer[:min(int64(len(buffer)), l.left)])
	l.left -= int64(count)
	return count, err
}

// limitError is returned if a limit was exceeded.
type limitError struct{ text string }

func (e *limitError) Error() string { return e.text }

// Is makes it match errTooLarge.
func (e *limitError) Is(target error) bool { return target == errTooLarge }

func tooLarge(format string, arguments ...any) error {
	return &limitError{text: fmt.Sprintf(format, arguments...)}
}

// sizeText formats a number of bytes in the largest unit of which it is a multiple.
func sizeText(size int64) string {
	for _, unit := range []struct {
		bytes int64
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if size >= unit.bytes && size%unit.bytes == 0 {
			return fmt.Sprintf("%d %s", size/unit.bytes, unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", size)
}
