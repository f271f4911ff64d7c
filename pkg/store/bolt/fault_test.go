// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/pkg/store/bolt/internal/journal"
)

// fault is what goes wrong with one operation.
type fault struct {
	name string
	// sync tells whether it happens to syncs, else to writes and to opening files.
	sync bool
	// written is the share of a write that is done all the same.
	written float64
	err     error
}

var diskFaults = []fault{
	{name: "no space", err: syscall.ENOSPC},
	{name: "no space after half of it", written: 0.5, err: syscall.ENOSPC},
	{name: "quota after all of it", written: 1, err: syscall.EDQUOT},
	{name: "write fails", err: syscall.EIO},
	{name: "write is torn", written: 0.7, err: syscall.EIO},
	{name: "sync fails", sync: true, err: syscall.EIO},
}

// faultyDisk lets one operation go wrong: the one that countdown reaches zero with. It
// records what a power loss would leave, too.
type faultyDisk struct {
	*recordingDisk
	fault fault

	mu        sync.Mutex
	countdown int
	happened  bool
}

func (d *faultyDisk) hits(sync bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if sync != d.fault.sync {
		return false
	}
	d.countdown--
	if d.countdown == 0 {
		d.happened = true
	}
	return d.countdown == 0
}

func (d *faultyDisk) hasHappened() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.happened
}

func (d *faultyDisk) Open(path string, create bool) (journal.File, error) {
	if create && d.hits(false) {
		return nil, &os.PathError{Op: "open", Path: path, Err: d.fault.err}
	}
	f, err := d.recordingDisk.Open(path, create)
	if err != nil {
		return nil, err
	}
	return &faultyFile{File: f, disk: d}, nil
}

func (d *faultyDisk) Attach(f *os.File) journal.File {
	return &faultyFile{File: d.recordingDisk.Attach(f), disk: d}
}

func (d *faultyDisk) SyncFolder(path string) error {
	if d.hits(true) {
		return d.fault.err
	}
	return d.recordingDisk.SyncFolder(path)
}

type faultyFile struct {
	journal.File
	disk *faultyDisk
}

func (f *faultyFile) WriteAt(b []byte, offset int64) (int, error) {
	if !f.disk.hits(false) {
		return f.File.WriteAt(b, offset)
	}
	part := b[:int(float64(len(b))*f.disk.fault.written)]
	if len(part) == 0 {
		return 0, f.disk.fault.err
	}
	n, err := f.File.WriteAt(part, offset)
	return n, errors.Join(err, f.disk.fault.err)
}

func (f *faultyFile) Sync() error {
	if f.disk.hits(true) {
		return f.disk.fault.err
	}
	return f.File.Sync()
}

// TestFaultAtEveryStep lets each operation on the disk go wrong once, in each way: what
// was answered stays true, whether the process goes on, is opened anew, or loses its power.
func TestFaultAtEveryStep(t *testing.T) {
	crashed := crashedStore(t)
	for _, f := range diskFaults {
		t.Run(f.name, func(t *testing.T) {
			for n := 1; ; n++ {
				if !runWithFault(t, crashed, f, n) {
					t.Logf("%d operations", n-1)
					return
				}
			}
		})
	}
}

// crashedStore is a store that was not closed, with entries in its journal.
func crashedStore(t *testing.T) capture {
	t.Helper()
	path := leasedStore(t)
	disk := recordDisk(t, path)
	e := mustOpenOn(t, path, bolt.Options{}.WithDisk(disk))
	client, p := bolt.NewClient(t.Context(), e).Client, newPromises()
	for range 5 {
		if err := p.write(t.Context(), client, 0); err != nil {
			t.Fatal(err)
		}
	}
	disk.mu.Lock()
	defer disk.mu.Unlock()
	return disk.capture()
}

// runWithFault runs an engine whose n-th operation goes wrong. It returns false when there is no n-th.
func runWithFault(t *testing.T, crashed capture, f fault, n int) bool {
	t.Helper()
	path := crashed.restore(t, killed)
	disk := &faultyDisk{recordingDisk: recordDisk(t, path), fault: f, countdown: n}
	p := newPromises()
	p.done[0] = 5
	e, err := openOn(t, path, bolt.Options{}.WithDisk(disk))
	if err != nil {
		if !disk.hasHappened() {
			t.Fatalf("operation %d: open: %v", n, err)
		}
		checkOutcome(t, path, p)
		return true
	}
	writeThroughFault(t, e, p, disk, n)
	p.check(t, e)
	disk.recordingDisk.mu.Lock()
	c := disk.capture()
	disk.recordingDisk.mu.Unlock()
	checkOutcome(t, c.restore(t, func() bool { return false }), p)
	if err := e.Close(); err != nil && !disk.hasHappened() {
		t.Fatalf("operation %d: close: %v", n, err)
	}
	checkOutcome(t, path, p)
	return disk.hasHappened()
}

// writeThroughFault writes enough for checkpoints. A write fails because of the
// fault and for no other reason; it leaves nothing and others go on, unless it is said that the
// outcome is unknown: then all fail from there on.
func writeThroughFault(t *testing.T, e *bolt.Engine, p *promises, disk *faultyDisk, n int) {
	t.Helper()
	client := bolt.NewClient(t.Context(), e).Client
	refusing := false
	for range 25 {
		err := p.write(t.Context(), client, 0)
		switch {
		case err == nil && refusing:
			t.Fatalf("operation %d: a write was taken after one with an unknown outcome", n)
		case err == nil:
		case !disk.hasHappened():
			t.Fatalf("operation %d: %v", n, err)
		case strings.Contains(err.Error(), "refuses writes"):
			refusing = true
		case refusing || !errors.Is(disk.fault.err, syscall.EIO) && !errors.Is(err, bolt.ErrDiskFull):
			t.Fatalf("operation %d: %v", n, err)
		}
	}
	// A checkpoint may fail when all is written.
	err := e.Check(t.Context())
	if refusing && err == nil || err != nil && !(disk.hasHappened() && strings.Contains(err.Error(), "refuses writes")) {
		t.Fatalf("operation %d: refuses writes: %v, health check: %v", n, refusing, err)
	}
}

// TestStoreThatIsFull lets bbolt fail after the journal has the entry: the entry is
// taken back, and what comes later is done.
func TestStoreThatIsFull(t *testing.T) {
	path := leasedStore(t)
	disk := recordDisk(t, path)
	e := mustOpenOn(t, path, bolt.Options{MaxFileBytes: 1 << 20}.WithDisk(disk))
	large := strings.Repeat("x", 40_000)
	written := 0
	for ; ; written++ {
		_, err := e.Put(t.Context(), &pb.PutRequest{Key: fmt.Appendf(nil, "/large/%03d", written), Value: []byte(large)})
		if errors.Is(err, bolt.ErrDiskFull) {
			break
		}
		if err != nil || written > 1000 {
			t.Fatalf("%d written: %v", written, err)
		}
	}
	if err := e.CheckSpace(); !errors.Is(err, bolt.ErrDiskFull) || !strings.Contains(err.Error(), "may have only") {
		t.Errorf("a file that is as large as it may be: %v", err)
	}
	disk.mu.Lock()
	c := disk.capture()
	disk.mu.Unlock()
	// The pages that small changes need are there once a checkpoint has freed them.
	eventually(t, "a small write is taken", func() bool {
		_, err := e.Put(t.Context(), &pb.PutRequest{Key: []byte("/small"), Value: []byte("x")})
		return err == nil
	})
	if want := int64(2 + written); e.Revision() != want {
		t.Errorf("revision %d after those that were refused, want %d", e.Revision(), want)
	}
	for _, left := range []outcome{killed, func() bool { return false }} {
		again := mustOpenOn(t, c.restore(t, left), bolt.Options{}.WithDisk(unsyncedDisk{}))
		if got := countOf(t, again, "/large/", 0); got != int64(written) || again.Revision() != int64(1+written) {
			t.Errorf("%d keys at revision %d, want %d", got, again.Revision(), written)
		}
		checkPages(t, again)
		closeEngine(t, again)
	}
}
