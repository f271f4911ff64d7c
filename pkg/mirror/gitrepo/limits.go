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
	// DefaultMaxMemory is Limits.Memory unless it is set: 256 MiB, enough for a branch of about a million files.
	DefaultMaxMemory = 256 << 20
	// DefaultMaxTransfer is Limits.Transfer unless it is set: 16 GiB, about what can be inflated in two minutes.
	DefaultMaxTransfer = 16 << 30

	// maxAdvertisement bounds the list of references, in bytes: about four million of them.
	maxAdvertisement = 256 << 20
	// maxNegotiation bounds what a server says before the pack, in bytes.
	maxNegotiation = 16 << 20
	// maxTalk bounds progress and what hooks print, and maxReport the report of a push, in bytes.
	maxTalk   = 16 << 20
	maxReport = 1 << 20
	// maxHeader bounds the headers of an HTTP response, in bytes.
	maxHeader = 256 << 10
	// maxPrivateKey bounds a private key, in bytes: that of RSA with 16384 bits takes 12 KiB, and a second for a signature,
	// which no context ends. Larger ones take minutes.
	maxPrivateKey = 16 << 10

	// smallMemory is what an operation may hold without a slot of Limits.Large, in bytes: enough for a branch of 30 000 files,
	// and little enough for all branches that are written at once.
	smallMemory = 8 << 20
)

var (
	// errTooLarge says that something was not read to its end because of its size.
	errTooLarge = errors.New("the answer is larger than what is read of it")
	// errTooSlow ends the context of a call that has taken longer than Limits.Time.
	errTooSlow = errors.New("the server takes too long")
)

// Limits bound what one call of a method of Remote or Branch takes, whatever the server sends. The zero value is the
// defaults.
type Limits struct {
	// Memory is how many bytes of the server's objects are held at a time; 0 is DefaultMaxMemory. What is counted is the
	// size that an object claims to have, before room is made for it.
	Memory int64
	// Transfer is how many bytes are read; 0 is DefaultMaxTransfer. Objects count by what they inflate to as well, deltas
	// by what they make, and each object by 512 bytes more.
	Transfer int64
	// Time is how long a call waits for the server and reads what it sends; 0 is without end.
	Time time.Duration
	// Large, if set, has a slot for each call that needs more than 8 MiB of memory, so that only so many of them run at a
	// time. Remotes share it, and Owner says for whom the slot is. Time does not run while a call waits for its slot.
	Large *fairshare.Slots
	Owner string
}

// budget is what one operation may still read and hold. Every byte that comes from a server is counted here.
type budget struct {
	limits Limits
	// read is counted where connections are read, which for SSH is another goroutine.
	read atomic.Int64
	held int64
	// large gives the slot of limits.Large back; nil if there is none.
	large func()
	// timer ends the call at the deadline; nil if it may take as long as it does.
	timer    *time.Timer
	deadline time.Time
	// cancel ends the call's context.
	cancel context.CancelCauseFunc
}

// begin returns the budget of a call, and the context for it. The caller ends the budget.
func (r *Remote) begin(ctx context.Context) (context.Context, *budget) {
	b := r.newBudget()
	if b.limits.Time <= 0 {
		return ctx, b
	}
	ctx, b.cancel = context.WithCancelCause(ctx)
	b.deadline = time.Now().Add(b.limits.Time)
	b.timer = time.AfterFunc(b.limits.Time, func() { b.cancel(errTooSlow) })
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
	return b
}

// end returns what the operation has acquired.
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

// take counts bytes that were read, or are about to be.
func (b *budget) take(size int64) error {
	if size < 0 || b.read.Add(size) > b.limits.Transfer {
		return b.refusal()
	}
	return nil
}

// spent says whether more was read than may be.
func (b *budget) spent() bool { return b.read.Load() > b.limits.Transfer }

// refusal is the error for more than may be read.
func (b *budget) refusal() error {
	return tooLarge("the server sends more than %s", sizeText(b.limits.Transfer))
}

// hold counts bytes that are about to be kept in memory.
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

// waitForSlot acquires a slot for a large operation. The time that this takes is not the server's.
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

// release takes back what hold counted.
func (b *budget) release(size int64) { b.held -= size }

// meter counts what is read of a stream.
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

// limitedReader reads one part of a conversation, which is not to be longer than so many bytes.
type limitedReader struct {
	stream io.Reader
	left   int64
	// exceeded is returned where there would be more.
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

// limitError is a refusal because of a size.
type limitError struct{ text string }

func (e *limitError) Error() string { return e.text }

// Is makes it an errTooLarge.
func (e *limitError) Is(target error) bool { return target == errTooLarge }

func tooLarge(format string, arguments ...any) error {
	return &limitError{text: fmt.Sprintf(format, arguments...)}
}

// sizeText writes a number of bytes in the largest unit that it is a multiple of.
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
