// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/configbutler/slipstream/pkg/store/bolt"
)

// fault is the failure of one disk operation.
type fault struct {
	name string
	// sync is true for a failed sync, false for a failed write.
	sync bool
	// written is the fraction of a failed write that reaches the file.
	written float64
	err     error
}

var diskFaults = []fault{
	{name: "no space", err: syscall.ENOSPC},
	{name: "no space after half of the write", written: 0.5, err: syscall.ENOSPC},
	{name: "quota exceeded after the whole write", written: 1, err: syscall.EDQUOT},
	{name: "write fails", err: syscall.EIO},
	{name: "write is torn", written: 0.7, err: syscall.EIO},
	{name: "sync fails", sync: true, err: syscall.EINVAL},
}

// faultyFile makes one operation fail: the one at which countdown reaches zero. It also records the state that a power
// loss would leave.
type faultyFile struct {
	*recordedFile
	fault     fault
	countdown int
	occurred  bool

	// committing is true from the first data page of a commit until its meta page.
	committing bool
	// saved is a duplicate of the file's descriptor while a descriptor that cannot be synced replaces it, otherwise -1.
	saved int
}

// breakFile makes the n-th operation of an engine fail.
func breakFile(t *testing.T, e *bolt.Engine, f fault, n int) *faultyFile {
	t.Helper()
	faulty := &faultyFile{recordedFile: recordFile(t, e), fault: f, countdown: n, saved: -1}
	e.InterceptWrites(faulty.WriteAt)
	t.Cleanup(faulty.mend)
	return faulty
}

func (f *faultyFile) hits() bool {
	f.countdown--
	f.occurred = f.occurred || f.countdown == 0
	return f.countdown == 0
}

func (f *faultyFile) WriteAt(b []byte, offset int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begin(offset)
	isMeta := offset < f.metaBytes
	beforeSync := isMeta || !f.committing
	f.committing = !isMeta
	switch {
	case f.fault.sync && beforeSync && f.hits():
		f.breakSync()
	case !f.fault.sync && f.hits():
		f.committing, f.metaPending = false, false
		n, err := f.write(b[:int(float64(len(b))*f.fault.written)], offset)
		return n, errors.Join(err, f.fault.err)
	}
	return f.write(b, offset)
}

// breakSync makes the next sync of bbolt fail by replacing its descriptor with that of a pipe. The duplicate of the
// descriptor keeps the lock of the file.
func (f *faultyFile) breakSync() {
	descriptor := int(f.engine.File().Fd())
	var pipe [2]int
	saved, err := syscall.Dup(descriptor)
	if err = errors.Join(err, syscall.Pipe2(pipe[:], syscall.O_CLOEXEC), syscall.Dup3(pipe[1], descriptor, syscall.O_CLOEXEC)); err != nil {
		panic(err)
	}
	f.saved = saved
	_ = errors.Join(syscall.Close(pipe[0]), syscall.Close(pipe[1]))
}

// mend restores the descriptor after a failed sync.
func (f *faultyFile) mend() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.saved < 0 {
		return
	}
	if err := syscall.Dup3(f.saved, int(f.engine.File().Fd()), syscall.O_CLOEXEC); err != nil {
		panic(err)
	}
	_ = syscall.Close(f.saved)
	f.saved, f.committing = -1, false
	f.failSync()
}

// hasOccurred reports whether the operation has failed.
func (f *faultyFile) hasOccurred() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.occurred
}

// TestFaultAtEveryStep makes each operation on the file fail once with each fault. Acknowledged writes must be kept,
// whether the process continues, restarts, or loses power.
func TestFaultAtEveryStep(t *testing.T) {
	t.Parallel() // It mostly waits for the disk.
	path := leasedStore(t)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range diskFaults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel() // They mostly wait for the disk.
			for n := 1; ; n++ {
				path := path + f.name
				if err := os.WriteFile(path, bytes.TrimRight(content, "\x00"), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Truncate(path, int64(len(content))); err != nil {
					t.Fatal(err)
				}
				if !runWithFault(t, path, f, n) {
					t.Logf("%d operations", n-1)
					return
				}
			}
		})
	}
}

// runWithFault runs an engine whose n-th operation fails. It returns false if there were fewer operations.
func runWithFault(t *testing.T, path string, f fault, n int) (occurred bool) {
	t.Helper()
	options := bolt.Options{}
	if !f.sync {
		options = options.WithoutSync()
	}
	e, p := openManual(t, path, options), newAcknowledgedWrites()
	file := breakFile(t, e, f, n)
	refusing := writeThroughFault(t, e, p, file, n)
	if f.sync && refusing != (n%2 == 0) && file.hasOccurred() {
		t.Errorf("sync %d failed, refusing writes = %v, want true after the second sync of a commit only", n, refusing)
	}
	p.check(t, e)
	c := file.capture()
	random := rand.New(rand.NewPCG(uint64(n), 0))
	for _, left := range []outcome{nothingUnsynced, powerLoss(random)} {
		checkOutcome(t, c.restore(t, left), p)
	}
	closeEngine(t, e)
	checkOutcome(t, path, p)
	return file.hasOccurred()
}

// writeThroughFault writes some batches. Writes may fail only because of the fault. A failed write must leave nothing, and
// later writes must succeed, unless its outcome is unknown: then all later writes must fail.
func writeThroughFault(t *testing.T, e *bolt.Engine, p *acknowledgedWrites, file *faultyFile, n int) (refusing bool) {
	t.Helper()
	client := bolt.NewClient(t.Context(), e).Client
	for range byFaults(6, 12) {
		err := p.write(t.Context(), client, 0)
		if err != nil {
			file.mend()
		}
		switch {
		case err == nil && refusing:
			t.Fatalf("operation %d: a write was accepted after one with an unknown outcome", n)
		case err == nil:
		case !file.hasOccurred():
			t.Fatalf("operation %d: %v", n, err)
		case strings.Contains(err.Error(), "refuses writes"):
			refusing = true
		case refusing || errors.Is(file.fault.err, syscall.EIO) == errors.Is(err, bolt.ErrDiskFull) && !file.fault.sync:
			t.Fatalf("operation %d: %v", n, err)
		}
	}
	if err := e.Check(t.Context()); refusing != (err != nil) {
		t.Fatalf("operation %d: refusing writes = %v, health check: %v", n, refusing, err)
	}
	return refusing
}

// TestPowerLossAfterFailedSync makes the sync of a meta page fail, reopens the file, and simulates a power loss during the
// next commits. The operating system still returns the page that it failed to write.
func TestPowerLossAfterFailedSync(t *testing.T) {
	t.Parallel() // It mostly waits for the disk.
	repeatFor(t, 5, func(random *rand.Rand) {
		path := leasedStore(t)
		e, p := openManual(t, path, bolt.Options{}), newAcknowledgedWrites()
		file := breakFile(t, e, fault{sync: true}, 2*(5+random.IntN(5)))
		client := bolt.NewClient(t.Context(), e).Client
		for p.write(t.Context(), client, 0) == nil {
		}
		file.mend()
		before := file.recordedFile
		closeEngine(t, e)

		e = openManual(t, path, bolt.Options{}.WithoutSync())
		again := recordFile(t, e)
		again.synced, again.lost = before.synced, before.lost
		if err := bolt.SyncMetaPage(metaSync{again}); err != nil { // As Open does.
			t.Fatal(err)
		}
		p.resume(t, e, 1)
		p.revision = e.Revision()
		var captures []capture
		var acknowledged []*acknowledgedWrites
		again.step = func() {
			acknowledged = append(acknowledged, p.clone())
			captures = append(captures, again.captureLocked())
		}
		client = bolt.NewClient(t.Context(), e).Client
		for range 5 {
			if err := p.write(t.Context(), client, 0); err != nil {
				t.Fatal(err)
			}
		}
		closeEngine(t, e)
		for i, c := range captures {
			checkOutcome(t, c.restore(t, nothingUnsynced), acknowledged[i])
			checkOutcome(t, c.restore(t, powerLoss(random)), acknowledged[i])
		}
	})
}

// metaSync records the writes and syncs that Open makes.
type metaSync struct{ *recordedFile }

func (m metaSync) ReadAt(b []byte, offset int64) (int, error)  { return m.file.ReadAt(b, offset) }
func (m metaSync) WriteAt(b []byte, offset int64) (int, error) { return m.write(b, offset) }
func (m metaSync) Sync() error {
	m.sync()
	return nil
}

// TestMaxFileBytes fills a file up to its maximum size. Writes must fail, and succeed after the file is opened with a
// higher limit.
func TestMaxFileBytes(t *testing.T) {
	path := leasedStore(t)
	e := openManual(t, path, bolt.Options{MaxFileBytes: 1 << 20}.WithoutSync())
	file := recordFile(t, e)
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
		t.Errorf("space check of a file at its size limit: %v", err)
	}
	c := file.capture()
	for _, left := range []outcome{killed, nothingUnsynced} {
		again := openManual(t, c.restore(t, left), bolt.Options{}.WithoutSync())
		if got := countOf(t, again, "/large/", 0); got != int64(written) || again.Revision() != int64(1+written) {
			t.Errorf("%d keys at revision %d, want %d", got, again.Revision(), written)
		}
		checkPages(t, again)
		set(t, again, "/after", "x")
		closeEngine(t, again)
	}
}
