// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

var (
	// ErrClosed is the answer to every request after Close. A write that was
	// queued when Close was called was either committed or answers ErrClosed.
	ErrClosed = errors.New("store is closed")

	// ErrLocked says that another process has the file open.
	ErrLocked = errors.New("store file is in use by another process: one process at a time may open it")

	// ErrDiskFull says that a write was refused for want of space on the disk.
	// Nothing of it was kept; reads go on, and writes do once there is space.
	ErrDiskFull = errors.New("disk of the store is full")
)

// Defaults of [Options].
const (
	DefaultCompactionInterval = 5 * time.Minute
	DefaultProgressInterval   = 5 * time.Second
	DefaultLockTimeout        = time.Second
	DefaultMaxRequestBytes    = 3 << 19 // 1.5 MiB, etcd's own limit
	DefaultMaxFileBytes       = 64 << 30
)

// rememberedCounts bounds how many unfinished paged lists find their count without counting.
const rememberedCounts = 1024

// Options tunes an engine. The zero value is right for production.
type Options struct {
	// CompactionInterval is how often history is compacted and the least that is
	// kept of it: what is older than the last but one compaction goes. 0 means
	// DefaultCompactionInterval; a negative one leaves compaction to the caller.
	CompactionInterval time.Duration

	// ProgressInterval is how often a watch that asked for it is told how far it
	// has come. 0 means DefaultProgressInterval.
	ProgressInterval time.Duration

	// LockTimeout is how long Open waits for another process to let go of the
	// file. 0 means DefaultLockTimeout.
	LockTimeout time.Duration

	// MaxRequestBytes bounds keys and values of one transaction together; a larger
	// one is refused with rpctypes.ErrRequestTooLarge, as etcd does. 0 means
	// DefaultMaxRequestBytes.
	MaxRequestBytes int

	// MaxFileBytes is how large the file may become; writes that need more fail with
	// ErrDiskFull. As much address space is reserved, but neither memory nor disk.
	// 0 means DefaultMaxFileBytes.
	MaxFileBytes int

	// Clock drives leases, compaction and progress. nil is the real one.
	Clock clock.WithTicker

	// noSync leaves commits unsynced, for tests that never lose power.
	noSync bool
}

func (o Options) withDefaults() Options {
	if o.CompactionInterval == 0 {
		o.CompactionInterval = DefaultCompactionInterval
	}
	if o.ProgressInterval == 0 {
		o.ProgressInterval = DefaultProgressInterval
	}
	if o.LockTimeout == 0 {
		o.LockTimeout = DefaultLockTimeout
	}
	if o.MaxRequestBytes == 0 {
		o.MaxRequestBytes = DefaultMaxRequestBytes
	}
	if o.MaxFileBytes == 0 {
		o.MaxFileBytes = DefaultMaxFileBytes
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}

// Engine is one open store file. Its methods may be called concurrently.
type Engine struct {
	db       *bbolt.DB
	options  Options
	logger   logr.Logger
	identity uint64

	// queue feeds the committer, the only goroutine that writes to db.
	queue chan *request
	// stop is closed by Close; stopped once the committer has answered all it took.
	stop, stopped chan struct{}
	closing       sync.Once
	closeErr      error
	background    sync.WaitGroup

	// failure is set when a commit failed that readers can see, so that it is unknown
	// whether it is on disk. Every later write fails with it until the file is opened again.
	failure atomic.Pointer[error]

	// space remembers that there was no space for a write.
	space spaceWatch

	feed     *feed
	leases   *leaseTable
	progress *progressHub
	watches  *watchSet
	metrics  observers

	// remaining remembers, for the next page of a paged list, how many keys are left.
	remaining *lru.Cache
}

// Open opens or creates the store file at path, and the folder it is in. It
// fails with [ErrLocked] while another process has the file open, and refuses a
// file of a format that it does not know. ctx gives the logger, and ends the check of
// the file's pages; the engine runs until Close.
func Open(ctx context.Context, path string, options Options) (*Engine, error) {
	e := &Engine{
		options:   options.withDefaults(),
		logger:    klog.FromContext(ctx).WithValues("store", path),
		queue:     make(chan *request, queueLength),
		stop:      make(chan struct{}),
		stopped:   make(chan struct{}),
		progress:  newProgressHub(),
		watches:   newWatchSet(),
		metrics:   newObservers(storeName(path)),
		remaining: lru.New(rememberedCounts),
	}
	if err := e.load(ctx, path); err != nil {
		return nil, fmt.Errorf("opening store %s: %w", path, err)
	}
	e.run(e.commitLoop)
	e.run(e.expiryLoop)
	if e.options.CompactionInterval > 0 {
		e.run(e.compactionLoop)
	}
	return e, nil
}

// load opens the file and reads the state that the engine keeps in memory.
func (e *Engine) load(ctx context.Context, path string) (err error) {
	if e.db, err = openDatabase(ctx, path, e.options); err != nil {
		return err
	}
	if err := guarded(func() error { return e.loadState(ctx) }); err != nil {
		return errors.Join(err, e.db.Close())
	}
	return nil
}

func (e *Engine) loadState(ctx context.Context) (err error) {
	if err = initialise(e.db); err != nil {
		return err
	}
	if err = checkSchema(ctx, e.db); err != nil {
		return err
	}
	if e.identity, err = readIdentity(e.db); err != nil {
		return err
	}
	return e.view(func(s snapshot) error {
		e.feed = newFeed(s.revision, s.compacted)
		e.leases, err = loadLeases(s, e.options.Clock)
		return err
	})
}

// run starts a goroutine that Close waits for.
func (e *Engine) run(loop func()) {
	e.background.Go(loop)
}

// Close stops the engine and closes the file. Watches end, requests that come
// later answer [ErrClosed]. It may be called more than once.
func (e *Engine) Close() error {
	e.closing.Do(func() {
		close(e.stop)
		e.background.Wait()
		e.closeErr = e.db.Close()
	})
	return e.closeErr
}

// Path is the store's file.
func (e *Engine) Path() string { return e.db.Path() }

// Identity is a number that was chosen when the file was created and tells it from
// every other. Responses carry it as etcd's do the number of the cluster.
func (e *Engine) Identity() uint64 { return e.identity }

// Revision is the last committed revision.
func (e *Engine) Revision() int64 {
	head, _ := e.feed.revisions()
	return head
}

// CompactRevision is the oldest revision that can be read, 0 if none was compacted.
// It makes the engine an etcd3.Compactor.
func (e *Engine) CompactRevision() int64 {
	_, compacted := e.feed.revisions()
	return compacted
}

func (e *Engine) header(revision int64) *pb.ResponseHeader {
	return &pb.ResponseHeader{ClusterId: e.identity, Revision: revision}
}

// size tells how large the file is and how much of that holds data, in bytes.
func (e *Engine) size() (total, used int64, err error) {
	err = e.db.View(func(tx *bbolt.Tx) error {
		total = tx.Size()
		used = total - int64(e.db.Stats().FreePageN)*int64(e.db.Info().PageSize)
		return nil
	})
	return total, used, err
}
