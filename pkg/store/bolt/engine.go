// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

var (
	// ErrClosed is the error of every request after Close. A write that was queued when Close was called was either
	// committed or fails with ErrClosed.
	ErrClosed = errors.New("store is closed")

	// ErrLocked is returned if another process has the file open.
	ErrLocked = errors.New("store file is in use by another process: one process at a time may open it")

	// ErrDiskFull is returned for a write that was refused for lack of disk space. Nothing of it was stored; reads
	// continue to work, and writes do once there is space.
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

// Options configures an engine. The zero value is suitable for production.
type Options struct {
	// CompactionInterval is the interval of compactions and the minimum history that is kept: revisions older than the
	// last but one compaction are dropped. 0 means DefaultCompactionInterval; a negative one leaves compaction to the
	// caller.
	CompactionInterval time.Duration

	// ProgressInterval is the interval of progress notifications for a watch that requested them. 0 means
	// DefaultProgressInterval.
	ProgressInterval time.Duration

	// LockTimeout is how long Open waits for another process to release the file. 0 means DefaultLockTimeout.
	LockTimeout time.Duration

	// MaxRequestBytes bounds the total size of keys and values of one transaction; a larger one is refused with
	// rpctypes.ErrRequestTooLarge, as in etcd. 0 means DefaultMaxRequestBytes.
	MaxRequestBytes int

	// MaxFileBytes is the maximum size of the file; writes that need more fail with ErrDiskFull. That much address space
	// is reserved, but neither memory nor disk. 0 means DefaultMaxFileBytes.
	MaxFileBytes int

	// Clock drives leases, compaction and progress. nil means the real clock.
	Clock clock.WithTicker

	// noSync does not sync commits, for tests without power loss.
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

// Engine is an open store file. It is safe for concurrent use.
type Engine struct {
	db       *bbolt.DB
	options  Options
	identity uint64
	metrics  observers

	// feed and leases have the committed changes and leases in memory.
	feed   *feed
	leases *leaseTable

	reader    *reader
	committer *committer
	compactor *compactor
	// space records whether a write failed for lack of space.
	space   spaceWatch
	watches *watchServer

	// stop is closed by Close, which waits for the background goroutines.
	stop       chan struct{}
	closing    sync.Once
	closeErr   error
	background sync.WaitGroup
}

// Open opens or creates the store file at path, and its folder. It returns [ErrLocked] if another process has the file
// open, and an error for a file of an unknown format. ctx has the logger, and cancels the check of the file's pages; the
// engine runs until Close.
func Open(ctx context.Context, path string, options Options) (*Engine, error) {
	e := &Engine{
		options: options.withDefaults(),
		metrics: newObservers(storeName(path)),
		stop:    make(chan struct{}),
	}
	if err := e.load(ctx, path); err != nil {
		return nil, fmt.Errorf("opening store %s: %w", path, err)
	}
	e.start(klog.FromContext(ctx).WithValues("store", path))
	return e, nil
}

// load opens the file and reads the engine's state in memory.
func (e *Engine) load(ctx context.Context, path string) (err error) {
	if e.db, err = openDatabase(ctx, path, e.options); err != nil {
		return err
	}
	e.reader = newReader(e.db)
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
	return e.reader.view(func(s snapshot) error {
		e.feed = newFeed(s.revision, s.compacted)
		e.leases, err = loadLeases(s, e.options.Clock)
		return err
	})
}

// start creates the parts of a loaded engine and starts their goroutines, for which Close waits.
func (e *Engine) start(logger logr.Logger) {
	e.committer = &committer{
		db: e.db, maxBytes: e.options.MaxRequestBytes, clock: e.options.Clock, logger: logger, metrics: e.metrics, space: &e.space,
		feed: e.feed, leases: e.leases,
		queue: make(chan *request, queueLength), stop: e.stop, stopped: make(chan struct{}),
	}
	e.compactor = &compactor{
		committer: e.committer, feed: e.feed, clock: e.options.Clock, interval: e.options.CompactionInterval,
		logger: logger, metrics: e.metrics, stop: e.stop,
	}
	e.watches = &watchServer{
		identity: e.identity, feed: e.feed, reader: e.reader, clock: e.options.Clock, progressInterval: e.options.ProgressInterval,
		progress: newProgressHub(), open: newWatchSet(), stop: e.stop,
	}
	expirer := &leaseExpirer{committer: e.committer, leases: e.leases, clock: e.options.Clock, logger: logger, stop: e.stop}
	e.background.Go(e.committer.run)
	e.background.Go(expirer.run)
	if e.options.CompactionInterval > 0 {
		e.background.Go(e.compactor.run)
	}
}

// Close stops the engine and closes the file. Watches end, later requests fail with [ErrClosed]. It may be called more
// than once.
func (e *Engine) Close() error {
	e.closing.Do(func() {
		close(e.stop)
		e.background.Wait()
		e.closeErr = e.db.Close()
	})
	return e.closeErr
}

// Path returns the path of the store's file.
func (e *Engine) Path() string { return e.db.Path() }

// Identity returns a number that was chosen when the file was created and identifies it uniquely. Responses have it in
// the place of etcd's cluster ID.
func (e *Engine) Identity() uint64 { return e.identity }

// Revision returns the last committed revision.
func (e *Engine) Revision() int64 {
	head, _ := e.feed.revisions()
	return head
}

// CompactRevision returns the oldest revision that can be read, 0 if none was compacted. It makes the engine an
// etcd3.Compactor.
func (e *Engine) CompactRevision() int64 {
	_, compacted := e.feed.revisions()
	return compacted
}

func (e *Engine) header(revision int64) *pb.ResponseHeader {
	return newHeader(e.identity, revision)
}

// newHeader returns the header of a response of the store with an identity.
func newHeader(identity uint64, revision int64) *pb.ResponseHeader {
	return &pb.ResponseHeader{ClusterId: identity, Revision: revision}
}
